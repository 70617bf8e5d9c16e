# The first process (PID 1) of every session: writes the fixtures, runs the commands, kills, runs the checker.
# Talked to over stdin and stdout by the frames of frames.py; session.py is the other end. It is handed over as the
# text of `perl -e`, so that it never skews from the code that talks to it and lies nowhere in the agent's view.
#
# Perl, because perl-base is in every Debian, starts in 2 ms and can make system calls. No module is loaded, not even
# strict.pm: that would cost more than the rest of the start. So the few numbers needed stand here.
#
# The agent runs with the same user id. What keeps it out:
# - PID 1 of a namespace gets no signal from inside that it has no handler for, SIGKILL and SIGSTOP included: so
#   there is no handler here at all, and children that ended are told by a signalfd.
# - it is not dumpable: neither ptrace nor /proc/1/{fd,mem,environ} is open to the agent.
# - its two ends of the conversation are close-on-exec and closed in each child before anything of the agent's runs.
BEGIN { $^H |= 0x603 }    # what `use strict; use integer;` set

$0 = 'init';    # also wipes this text from /proc/1/cmdline

open(my $self, '<', '/proc/self/exe') or die "no /proc: $!\n";
sysread($self, my $elf, 20);
close $self;
my $machine = unpack('v', substr($elf, 18, 2));
my %call;       # numbers of the system calls
@call{qw(prctl setsid clock_gettime dup3 signalfd4 rt_sigprocmask prlimit64 mount capset O_NOFOLLOW)} =
    $machine == 0x3e ? (157, 112, 228, 292, 289, 14,  302, 165, 126, 0400000)     # x86_64
  : $machine == 0xb7 ? (167, 157, 113, 24,  74,  135, 261, 40,  91,  0100000)     # aarch64
  :                    die "unknown machine $machine\n";
my ($PR_SET_DUMPABLE, $SIG_BLOCK, $SIG_SETMASK, $SIGCHLD) = (4, 0, 2, 17);
my ($F_SETFL, $F_DUPFD_CLOEXEC, $O_NONBLOCK, $O_NEW) = (4, 1030, 04000, 0301);
my ($WNOHANG, $RLIMIT_NPROC, $RLIMIT_AS) = (1, 6, 9);
my ($READ, $STATE_MOST, $DRAIN_MOST, $IDLE_MOST, $FRAME_MOST) = (65536, 262144, 4194304, 1048576, 67108864);
my ($STATE_FD, $HIGH) = (7, 20);    # the child's fd for its state; ours lie above what a child may be given

syscall($call{prctl}, $PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 or die "prctl: $!\n";
umask 022;
# For all that we start: no core dumps, 1024 open files, no message queues, no locked memory.
bound(@$_) for [4, 0], [7, 1024], [12, 0], [8, 0];

# Our own ends move up, and 0 and 1 become /dev/null: no child can inherit them by mistake.
my $in  = high(\*STDIN);
my $out = high(\*STDOUT);
open(STDIN,  '<', '/dev/null') or die "/dev/null: $!\n";
open(STDOUT, '>', '/dev/null') or die "/dev/null: $!\n";
open(my $null, '+<', '/dev/null') or die "/dev/null: $!\n";
$null = high($null);
# Whatever is opened from here on gets a high number as well.
my @low = map { open(my $low, '<', '/dev/null') or die "/dev/null: $!\n"; $low } fileno(STDERR) + 1 .. $HIGH - 1;
my $blocked = pack('Q', 1 << ($SIGCHLD - 1));
syscall($call{rt_sigprocmask}, $SIG_BLOCK, $blocked, 0, 8) == 0 or die "sigprocmask: $!\n";
my $signalfd = syscall($call{signalfd4}, -1, $blocked, 8, 02000000 | $O_NONBLOCK);
$signalfd >= 0 or die "signalfd: $!\n";
open(my $signals, '<&=', $signalfd) or die "signalfd: $!\n";

my %limit = (output => 65536, pids => 0, nproc => 0, memory => 0);
my %env;                         # what the next command is given
my ($home, $cwd) = ('/', '/');
my $inbox = '';                  # bytes that came and are no whole frame yet
my %pipes;                       # fileno => read end of an output pipe that somebody still holds
my ($head, $tail, $total) = ('', '', 0);    # output since the last answer
my ($state_end, $state) = (undef, '');      # the running command's state fd and what came on it
my ($child, $status);

while (1) {
    my ($kind, @field) = request();
    if    ($kind eq 'L') { @limit{qw(output pids nproc memory)} = map { 0 + $_ } @field }
    elsif ($kind eq 'D') { folder($field[0], oct $field[1]) or refuse("$field[0]: $!") }
    elsif ($kind eq 'F') { fixture(@field) }
    elsif ($kind eq 'V') { $env{ $field[0] } = $field[1] }
    elsif ($kind eq 'I') { inodes(@field) }
    elsif ($kind eq 'S') { restrict($field[1]) if $field[0] == $machine }
    elsif ($kind eq 'G') { $home = $cwd = $field[0]; answer('R') }
    elsif ($kind eq 'X') { command(@field) }
    elsif ($kind eq 'C') { check(@field) }
    else                 { broken("a request of kind '$kind'") }
}

# ---- the conversation: 4 bytes length (big endian), 1 byte kind, fields each with 4 bytes length

sub answer {
    my ($kind, @field) = @_;
    my $body = $kind . pack('(N/a*)*', @field);
    write_all($out, pack('N/a*', $body)) or exit 1;
}

sub write_all {
    my ($file, $bytes) = @_;
    for (my $at = 0; $at < length $bytes;) {
        $at += syswrite($file, $bytes, length($bytes) - $at, $at) || return 0;
    }
    return 1;
}

sub refuse { answer('N', $_[0]); exit 0 }
sub broken { answer('B', $_[0]); exit 1 }

sub request {
    while (1) {
        if (length $inbox >= 4) {
            my $length = unpack('N', $inbox);
            broken("a frame of $length bytes") if $length < 1 or $length > $FRAME_MOST;
            if (length $inbox >= 4 + $length) {
                my $body = substr($inbox, 4, $length);
                substr($inbox, 0, 4 + $length, '');
                return (substr($body, 0, 1), unpack('(N/a*)*', substr($body, 1)));
            }
        }
        pump(undef);
    }
}

# ---- bounds, before anything of the agent's is here

# A tmpfs made by bubblewrap bounds its bytes but not its files. Whoever lets us do this gave us CAP_SYS_ADMIN (and
# CAP_SETPCAP) in the sandbox's own user namespace; `restrict` gives both back.
sub inodes {
    my ($path, $most) = @_;
    my ($kind, $options) = ('tmpfs', "nr_inodes=$most");
    syscall($call{mount}, $kind, $path, $kind, 32 | 2 | 4, $options) == 0    # MS_REMOUNT, MS_NOSUID, MS_NODEV
        or broken("$path: $!");
}

# From here on no capability, and the system calls of seccomp.py are refused, to us and to all that we start.
sub restrict {
    my $program = shift;
    for (my $capability = 0; syscall($call{prctl}, 24, $capability, 0, 0, 0) == 0; $capability++) { }    # bounding
    syscall($call{prctl}, 47, 4, 0, 0, 0);                                                               # ambient
    my ($header, $none) = (pack('LL', 0x20080522, 0), pack('L6', (0) x 6));
    syscall($call{capset}, $header, $none) == 0 or broken("capset: $!");
    my $filter = pack('S x6 P', length($program) / 8, $program);
    syscall($call{prctl}, 22, 2, $filter, 0, 0) == 0 or broken("seccomp: $!");
}

# ---- files that are there before the agent comes

sub folder {    # mkdir -p that follows no link
    my ($path, $mode) = @_;
    my $sofar = '';
    for my $name (grep { length } split m{/}, $path) {
        $sofar .= "/$name";
        next if lstat($sofar) && -d _;
        mkdir($sofar, 0755) or return 0;
        chmod($mode, $sofar) if defined $mode && $sofar eq $path;
    }
    return 1;
}

sub fixture {
    my ($path, $mode, $content) = @_;
    my ($parent) = $path =~ m{^(.+)/[^/]+$} or refuse("$path: no folder");
    folder($parent) or refuse("$path: $!");
    sysopen(my $file, $path, $O_NEW | $call{O_NOFOLLOW}, 0600) or refuse("$path: $!");
    write_all($file, $content) && chmod(oct $mode, $file) && close $file or refuse("$path: $!");
}

# ---- a command of the agent

# State that carries over is what the shell itself says at its end: `export -p` (PWD among it) on $STATE_FD, by an
# EXIT trap, and once more after the command's last line, since an agent may set a trap of its own. The line after it
# also says that the end was reached: without it the shell was left early. Both stand inline, because an `eval` around
# the command would put its name into every message of the shell ("sh: 1: eval: foo: not found").
sub command {
    my ($text, $milliseconds) = @_;
    my $note = make_room();
    my $trap = "trap '{ set +x;export -p;} 2>/dev/null >&$STATE_FD' 0;";
    my $end  = "\n{ set -- \$?;set +aex;export -p;echo .;} 2>/dev/null >&$STATE_FD;exit \$1";
    my $body = is_open_ended($text) ? 'eval ' . quoted($text) : $text;
    pipe(my $state_read, my $state_write) or broken("pipe: $!");
    $state_end = quiet($state_read);
    $state = '';
    my $result = run($milliseconds, { %env, PWD => $cwd }, $state_write, 'sh', '-c', "$trap$body$end");
    my $reached = carry_over();
    my $left = $result->{timed_out} || $reached ? 0 : 1;
    answer_result($result, $left, $note);
}

# Would the line put after it be taken for a part of it? Then it goes into an `eval`, which ends where it ends.
sub is_open_ended {
    my $text = shift;
    return 1 if $text =~ /[\\|&]\s*$/ || $text =~ /[|&]\s*#[^\n]*\s*$/ || $text =~ /\(\s*\)\s*$/;
    while ($text =~ /(?<!<)<<(?!<)(-?)[ \t]*(\S+)/g) {
        my ($dash, $word, $from) = ($1, $2, pos $text);
        $word =~ s/[;|&<>()].*//s;
        $word =~ tr/'"\\//d;
        my $tabs = $dash ? '\t*' : '';
        return 1 unless substr($text, $from) =~ /\n$tabs\Q$word\E(?:\n|$)/;
    }
    return 0;
}

sub quoted { my $text = shift; $text =~ s/'/'\\''/g; return "'$text'" }

# Reads what the shell said of its variables: `export NAME='value'`, quoted in whatever way its kind quotes. What
# cannot be read (cut by a kill, too long) leaves the earlier state as it is. True if the command's end was reached.
sub carry_over {
    my $text = $state;
    my $reached = $text =~ s/^\.\n(?=export |declare |\z)//m;
    return $reached if length $state >= $STATE_MOST || !length $text;
    my %new;
    while ($text =~ /\G(?:export|declare -x) ([A-Za-z_][A-Za-z0-9_]*)(=?)((?:'[^']*+'|"(?:[^"\\]|\\.)*+"|\\.|[^\s'"\\])*+)\n/gcs) {
        my ($name, $is_set, $word) = ($1, $2, $3);
        next unless $is_set;
        my $value = '';
        while ($word =~ /\G(?:'([^']*+)'|"((?:[^"\\]|\\.)*+)"|\\(.)|([^\s'"\\]))/gs) {
            my ($single, $double, $escaped, $bare) = ($1, $2, $3, $4);
            $double =~ s/\\([\$`"\\])/$1/g if defined $double;
            $value .= (grep { defined } $single, $double, $escaped, $bare)[0];
        }
        $new{$name} = $value;
    }
    return $reached if (pos($text) || 0) != length $text;
    my $folder = delete $new{PWD};
    $cwd = $folder if defined $folder && $folder =~ m{^/};
    %env = %new;
    return $reached;
}

# A house that is full when a command begins (a fork bomb left running) is emptied first: or no command would ever
# run again. 8 places are what a small pipeline needs.
sub make_room {
    return '' if !$limit{pids} || waitpid(-1, $WNOHANG) < 0;    # without a child of ours there is nobody at all
    opendir(my $proc, '/proc') or broken("/proc: $!");
    my $count = grep { /^\d/ } readdir $proc;
    return '' if $count <= $limit{pids} - 8;
    sweep();
    return "sh: too many processes: all that were running have been killed\n";
}

# ---- the checker: its text comes in this very message, when nobody is left who could read or change it

sub check {
    my ($text, $terminal, $reason, $milliseconds) = @_;
    sweep();
    %pipes = ();    # what is still in them is of no one's interest
    forget_output();
    $cwd = $home;
    my %own = (HOME => $home, PATH => '/usr/bin:/bin:/usr/sbin:/sbin', LANG => 'C.UTF-8', PWD => $home,
        TERMINAL => $terminal, PANIC_REASON => $reason);
    my $result = run($milliseconds, \%own, undef, 'sh', '-c', $text);
    sweep();
    answer_result($result, 0, '');
}

# ---- running

sub run {
    my ($milliseconds, $own_env, $state_write, @argv) = @_;
    my $began = now();
    pipe(my $read, my $write) or broken("pipe: $!");
    $pipes{ fileno $read } = quiet($read);
    # Done here and not in the child: there each write to memory would first copy a page.
    chdir $cwd or $own_env->{PWD} = chdir $home ? $home : chdir '/' ? '/' : '';    # removed, or closed to us
    %ENV = %$own_env;
    ($child, $status) = (undef, undef);
    $child = fork_or_make_room();
    become($write, $state_write, @argv) if $child == 0;
    close $write;
    close $state_write if $state_write;
    my $timed_out = 0;
    until (defined $status) {
        my $left = $milliseconds * 1000 - (now() - $began);
        if ($left > 0) { pump($left); next }
        $timed_out = 1;
        sweep();
        $status = 9 unless defined $status;
    }
    my $took = now() - $began;
    drain();
    my $code = $status & 127 ? 128 + ($status & 127) : $status >> 8;
    return { code => $code, timed_out => $timed_out, took => $took };
}

sub answer_result {
    my ($result, $left, $note) = @_;
    my $half = $limit{output} / 2;
    substr($tail, 0, length($tail) - $half, '') if length $tail > $half;
    my $cut = $total - length($head) - length($tail);
    answer('D', $result->{code}, $result->{timed_out}, $left, $result->{took}, $cut, $cwd, $note . $head, $tail);
    forget_output();
}

sub forget_output { ($head, $tail, $total) = ('', '', 0) }

# In the child. The conversation's ends are closed before it becomes dumpable: from there on the agent's other
# processes may look into it.
sub become {
    my ($write, $state_write, @argv) = @_;
    close $in;
    close $out;
    syscall($call{setsid});
    syscall($call{dup3}, fileno $null,  0, 0);
    syscall($call{dup3}, fileno $write, 1, 0);
    syscall($call{dup3}, fileno $write, 2, 0);
    syscall($call{dup3}, fileno $state_write, $STATE_FD, 0) if $state_write;
    my $none = pack('Q', 0);
    syscall($call{rt_sigprocmask}, $SIG_SETMASK, $none, 0, 8);
    bound($RLIMIT_NPROC, $limit{nproc}) if $limit{nproc};
    bound($RLIMIT_AS, $limit{memory}) if $limit{memory};
    syscall($call{prctl}, $PR_SET_DUMPABLE, 1, 0, 0, 0);
    my $first_to_go;    # where memory runs out
    write_all($first_to_go, '1000') if open($first_to_go, '>', '/proc/self/oom_score_adj');
    exec { '/bin/sh' } @argv;
    syswrite(STDERR, "sh: $!\n");
    syscall($call{prctl}, 1, 9, 0, 0, 0);
    kill 9, $$;
}

sub bound {
    my ($resource, $most) = @_;
    my $both = pack('QQ', $most, $most);
    syscall($call{prlimit64}, 0, $resource, $both, 0);
}

sub fork_or_make_room {
    for my $try (1 .. 12) {
        my $pid = fork;
        return $pid if defined $pid;
        select(undef, undef, undef, 0.02);
        sweep() if $try > 5;
    }
    broken("fork: $!");
}

# Kills whoever is left of the agent's and waits until nobody is. Signal 9 to -1 reaches all of this PID namespace
# but ourselves, and a fork that races with it fails; orphans become our children, so "no child left" is the proof.
sub sweep {
    while (kill(9, -1), (my $pid = waitpid(-1, 0)) > 0) { ended($pid) }
}

sub ended { $status = $? if defined $child && $_[0] == $child }

# ---- waiting

# One round: takes in what came on any fd, for at most so many microseconds (undef: for as long as it needs).
sub pump {
    my $microseconds = shift;
    my $bits = '';
    my $heard = defined $microseconds || $total < $IDLE_MOST;    # who floods an idle session is not read: it blocks
    vec($bits, fileno $_, 1) = 1 for $in, $signals, $heard ? values %pipes : (), $state_end ? $state_end : ();
    my $seconds;
    { BEGIN { $^H &= ~1 } $seconds = $microseconds / 1e6 if defined $microseconds; }
    return if select(my $ready = $bits, undef, undef, $seconds) <= 0;
    vec($ready, $_, 1) && take_output($_) for keys %pipes;
    take_state() if $state_end && vec($ready, fileno $state_end, 1);
    if (vec($ready, fileno $signals, 1)) {
        sysread($signals, my $told, 1024);
        while ((my $pid = waitpid(-1, $WNOHANG)) > 0) { ended($pid) }
    }
    if (vec($ready, fileno $in, 1)) {
        sysread($in, $inbox, $READ, length $inbox) or exit 0;    # the other end is gone: so are we, and all with us
    }
}

# Everything that is already in the pipes, but no more: a background process may write for ever.
sub drain {
    my $most = $total + $DRAIN_MOST;
    for my $number (keys %pipes) {
        1 while $total < $most && take_output($number);
    }
    1 while $state_end && take_state();
    $state_end = undef;
}

sub take_output {
    my $number = shift;
    my $count = sysread($pipes{$number}, my $chunk, $READ);
    delete $pipes{$number} if defined $count && $count == 0;    # the last one that held it is gone
    return 0 unless $count;
    $total += $count;
    my $half = $limit{output} / 2;
    my $room = $half - length $head;
    $head .= substr($chunk, 0, $room, '') if $room > 0;
    $tail .= $chunk;
    substr($tail, 0, length($tail) - $half, '') if length $tail > 4 * $half + $READ;
    return $count;
}

sub take_state {
    my $count = sysread($state_end, my $chunk, $READ);
    $state .= $chunk if $count && length $state < $STATE_MOST;
    $state_end = undef if defined $count && $count == 0;    # or select would come back at once till the shell is gone
    return $count;
}

# ---- file descriptors and time

sub high {
    my $end = shift;
    my $number = fcntl($end, $F_DUPFD_CLOEXEC, $HIGH) or die "fcntl: $!\n";
    close $end;
    open(my $moved, '+<&=', $number) or die "open: $!\n";
    return $moved;
}

sub quiet { fcntl($_[0], $F_SETFL, $O_NONBLOCK) or die "fcntl: $!\n"; return $_[0] }

sub now {    # microseconds
    my $time = "\0" x 16;
    syscall($call{clock_gettime}, 1, $time);
    my ($seconds, $nanoseconds) = unpack('qq', $time);
    return $seconds * 1_000_000 + $nanoseconds / 1000;
}
