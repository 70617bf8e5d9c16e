# Records which programs of the scenario an agent runs on a machine of Harbor, whose health check starts this as root.
#
# The first line of each program names run.pl, which tells the path and the arguments here and waits for the answer, so a
# run is on record before a line of its program has been executed. It counts if the file has the content of a program of
# the scenario, at any path. Only root can read or change the record.
use strict;
use warnings;
use Fcntl qw(O_NONBLOCK O_RDONLY);
use Socket;

my ($door, $record, $programs) = ('/run/winnow.sock', '/usr/lib/winnow/record/runs', '/usr/lib/winnow/programs');
my ($MOST, $SECONDS) = (4 << 20, 5);    # bytes of the record and of one run; for one run to be told

my %path_of = reverse unpack '(N/a*)*', text_of($programs);
open(my $file, '>>', $record) or die "$record: $!\n";
binmode $file;
$file->autoflush;
unlink $door;
socket(my $server, AF_UNIX, SOCK_STREAM, 0) or die "socket: $!\n";
bind $server, pack_sockaddr_un($door) or die "bind: $!\n";
chmod oct 666, $door;
listen $server, SOMAXCONN or die "listen: $!\n";
local $SIG{PIPE} = 'IGNORE';
while (1) {
    accept my $peer, $server or next;
    my @run = unpack '(N/a*)*', told_by($peer);
    my $path = @run ? $path_of{ text_of(shift @run) } : undef;
    if (defined $path && -s $file < $MOST) {
        print {$file} pack 'N/a*', pack '(N/a*)*', 0, $path, @run or die "$record: $!\n";
    }
    syswrite $peer, q{.};
}

# What a program tells until it closes its side; empty if that is too much or takes too long.
sub told_by {
    my $peer = shift;
    my ($told, $until, $ready) = ('', time + $SECONDS, '');
    vec($ready, fileno $peer, 1) = 1;
    while (time <= $until && length $told < $MOST) {
        next if !select my $found = $ready, undef, undef, 1;
        return $told if !sysread $peer, $told, 65_536, length $told;
    }
    return '';
}

# The content of a file that is no larger than the record may be. The agent names it, and it may be a FIFO.
sub text_of {
    my $path = shift;
    sysopen(my $opened, $path, O_RDONLY | O_NONBLOCK) or return '';
    return '' if !-f $opened || -s _ > $MOST;
    binmode $opened;
    local $/ = undef;
    return <$opened> // '';
}
