# Makes the entries of every folder again in another order (up, down), with times in that order, or makes every file
# older by so many seconds. Content and modes stay.
my $what  = shift;
my $time  = time - 100000;
my $older = $what eq 'older' ? shift : 0;

sub visit {
    my ($folder, $is_root) = @_;
    my @stat = lstat $folder or return;
    return if !-d _;
    my $mode = $stat[2] & oct 7777;
    chmod $mode | oct 700, $folder;
    opendir(my $listing, $folder) or return;
    my @names = sort grep { $_ ne '.' && $_ ne '..' } readdir $listing;
    closedir $listing;
    visit("$folder/$_") for @names;
    if ($older) {
        for my $path (grep { !-l && -f } map { "$folder/$_" } @names) {
            my @times = (stat $path)[8, 9];
            utime $times[0] - $older, $times[1] - $older, $path;
        }
    } else {
        @names = reverse @names if $what eq 'down';
        my $aside = "$folder/.reordered-$$";
        if (@names > 1 && mkdir $aside, 0700) {
            rename "$folder/$_", "$aside/$_" for @names;
            rename "$aside/$_",  "$folder/$_" for @names;
            rmdir $aside;
            utime $time, $time++, $_ for grep { !-l && -f } map { "$folder/$_" } @names;
        }
    }
    utime $stat[8] - $older, $stat[9] - $older, $folder;
    chmod $mode, $folder;
}

visit($_) for @ARGV;
