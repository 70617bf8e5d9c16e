# Prints every path below the given folders: kind, mode, path, data and size, all but the first two in hexadecimal, then
# the number of other processes. Data is a file's content or a link's target; of a large file only its SHA-256 and the
# number of its lines.
# It opens what its own mode hides, and restores the mode.
my ($most, $left) = (1048576, 3000000);

sub data_of {
    my ($path, $size) = @_;
    if ($size > $most || $size > $left) {
        open(my $sum, '-|', '/usr/bin/sha256sum', '--', $path) or return '?';
        my $line = <$sum>;
        close $sum;
        return '?' . ($line =~ /([0-9a-f]{64})/ ? $1 : '') . q{:} . lines_of($path);
    }
    $left -= $size;
    open(my $file, '<', $path) or return '?';
    local $/ = undef;
    my $content = <$file> // '';
    close $file;
    return '=' . unpack('H*', $content);
}

sub lines_of {
    my $path = shift;
    my $lines = 0;
    open(my $file, '<', $path) or return 0;
    while (read $file, my $part, 1048576) { $lines += $part =~ tr/\n// }
    close $file;
    return $lines;
}

sub show {
    my $path = shift;
    my @stat = lstat $path or return;
    my $mode = $stat[2] & oct 7777;
    my $kind = -l _ ? 'link' : -d _ ? 'folder' : -f _ ? 'file' : 'other';
    my $data = '=';
    if ($kind eq 'link') { $data = '=' . unpack('H*', readlink $path) }
    my $need = $kind eq 'file' ? oct 400 : $kind eq 'folder' ? oct 700 : 0;
    my $is_open = ($mode & $need) == $need;
    chmod $mode | $need, $path unless $is_open;
    if ($kind eq 'file') { $data = data_of($path, $stat[7]) }
    printf "%s %o %s %s %d\n", $kind, $mode, unpack('H*', $path), $data, $stat[7];
    if ($kind eq 'folder' && opendir(my $listing, $path)) {
        show("$path/$_") for sort grep { $_ ne '.' && $_ ne '..' } readdir $listing;
    }
    chmod $mode, $path unless $is_open;
}

show($_) for @ARGV;
opendir(my $proc, '/proc') or die "/proc: $!\n";
my %mine = (1 => 1, $$ => 1, getppid() => 1);
my $others = grep { /\A\d+\z/ && !$mine{$_} } readdir $proc;
print "processes $others\n";
