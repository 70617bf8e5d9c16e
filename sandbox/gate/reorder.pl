# Makes the entries of every folder again in another order (up, down), with times and numbers (inodes) in that order, or
# makes every file older by so many seconds. Content, modes and hard links stay.
my $what  = shift;
my $time  = time - 100000;
my $most  = 1048576;
my $older = $what eq 'older' ? shift : 0;

sub copied {
    my ($old, $new) = @_;
    my @stat = lstat $old or return 0;
    return 0 if !-f _ || $stat[3] > 1 || $stat[7] > $most;
    my $mode = $stat[2] & oct 7777;
    chmod $mode | oct 400, $old;
    my $is_made = open(my $from, '<', $old) && open(my $into, '>', $new);
    if ($is_made) {
        local $/ = undef;
        print {$into} <$from> // '';
        $is_made = close $into;
    }
    if (!$is_made) {
        chmod $mode, $old;
        unlink $new;
        return 0;
    }
    chmod $mode, $new;
    unlink $old;
    return 1;
}

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
            copied("$aside/$_", "$folder/$_") || rename "$aside/$_", "$folder/$_" for @names;
            rmdir $aside;
            utime $time, $time++, $_ for grep { !-l && -f } map { "$folder/$_" } @names;
        }
    }
    utime $stat[8] - $older, $stat[9] - $older, $folder;
    chmod $mode, $folder;
}

visit($_) for @ARGV;
