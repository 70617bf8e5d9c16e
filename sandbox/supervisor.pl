# The first process (PID 1) of every session: writes the fixtures, runs and kills commands. The other parts of this
# program are shell.pl, a command's shell, record.pl, which records the programs that are run, checker.pl, which runs
# the checker, and watch.pl, which watches what that writes. session.py talks to it over stdin and stdout in the frames
# of frames.py, and passes it as the text of `perl -e`: it always matches the code that talks to it and is no file that
# the agent could read.
#
# Perl, because perl-base is in every Debian, starts in 2 ms and can make system calls. No module is loaded, not even
# strict.pm: that would take longer than the rest of the start. So system calls and flags are numbers here.
#
# The agent runs with the same user id. What protects the supervisor:
# - PID 1 of a namespace receives no signal from inside that it has no handler for, not even SIGKILL and SIGSTOP. So
#   it sets no handler, and learns from a signalfd which children ended.
# - It is not dumpable: the agent cannot use ptrace or open /proc/1/{fd,mem,environ}.
# - Both ends of its connection are close-on-exec and closed in each child before any command of the agent runs.
BEGIN { $^H |= 0x603 }    # what `use strict; use integer;` would set

$0 = 'init';    # also removes this text from /proc/1/cmdline

open(my $self, '<', '/proc/self/exe') or die "no /proc: $!\n";
sysread($self, my $elf, 20);
close $self;
my $machine = unpack('v', substr($elf, 18, 2));
my %call;       # system call numbers
@call{
    qw(prctl setsid clock_gettime dup3 signalfd4 rt_sigprocmask prlimit64 mount capset memfd_create seccomp),
    qw(set_tid_address statfs sendmsg recvmsg mmap mremap close unshare umount2 pidfd_open O_NOFOLLOW)
} =
    $machine == 0x3e    # x86_64
  ? (157, 112, 228, 292, 289, 14,  302, 165, 126, 319, 317, 218, 137, 46,  47,  9,   25,  3,  272, 166, 434, 0x20000)
  : $machine == 0xb7    # aarch64
  ? (167, 157, 113, 24,  74,  135, 261, 40,  91,  279, 277, 96,  43,  211, 212, 222, 216, 57, 97,  39,  434, 0x8000)
  :                    die "unknown machine $machine\n";
my ($PR_SET_DUMPABLE, $SIG_BLOCK, $SIG_SETMASK, $SIGCHLD) = (4, 0, 2, 17);
my ($F_SETFL, $F_DUPFD_CLOEXEC, $O_NONBLOCK, $O_NEW) = (4, 1030, 0x800, 0xC1);
my ($WNOHANG, $RLIMIT_NPROC, $RLIMIT_AS) = (1, 6, 9);
my ($F_SETPIPE_SZ, $FIONREAD, $PART, $PATIENCE) = (1031, 0x541B, 4096, 3000);
my $WRITES = 0x243;    # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
my ($READ, $STATE_MOST, $DRAIN_MOST, $IDLE_MOST, $FRAME_MOST) = (65536, 262144, 4194304, 1048576, 67108864);
my ($READ_MOST, $RUNS_MOST) = (1048576, 262144);
# A shell reports its state on fd 7, reads its text from 8 and is executed from 9; our descriptors start at 20.
my ($STATE_FD, $SCRIPT_FD, $SHELL_FD, $HIGH) = (7, 8, 9, 20);

become_session() if exists &become_session;

# Opened before: a process that is not dumpable cannot open its own.
open(my $oom_score, '+<', '/proc/self/oom_score_adj') or die "oom_score_adj: $!\n";
sysread($oom_score, my $own_oom_score, 16);
# Counters of the control group, by their paths or as open files; not every machine has them.
my @events;
for my $counter (@ARGV) {
    my $file;
    push @events, $file if open($file, $counter =~ /\A\d+\z/ ? '<&=' : '<', $counter);
}
syscall($call{prctl}, $PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 or die "prctl: $!\n";
umask 022;
# For every child: no core dumps, 1024 open files, no message queues, no locked memory.
set_limit(@$_) for [4, 0], [7, 1024], [12, 0], [8, 0];

# Our ends get high numbers, and 0 and 1 become /dev/null: no child can inherit the connection by mistake.
my $in  = move_up(\*STDIN);
my $out = move_up(\*STDOUT);
open(STDIN,  '<', '/dev/null') or die "/dev/null: $!\n";
open(STDOUT, '>', '/dev/null') or die "/dev/null: $!\n";
open(my $null, '+<', '/dev/null') or die "/dev/null: $!\n";
$null = move_up($null);
@events = map { move_up($_) } @events;
# Fills the low numbers, so that everything opened from here on gets a high one.
1 while fcntl($null, $F_DUPFD_CLOEXEC, 0) < $HIGH - 1;
my $signals = signals_of_children();

my %limit = (output => 65536, pids => 0, nproc => 0, memory => 0);
my %env;                         # environment of the next command
my ($fixtures, @fixture_paths) = ('');    # packed path, mode and content of each
my ($listener, $can_listen, $is_heard);    # where held calls are heard, whether this kernel has it, and whether one was
my $is_silent;                             # there was no held call when the listener was ready
my %programs;                    # kind of interpreter => [{path, content, options of its first line}]
my ($is_used, $is_checked, $runs_size, @runs);    # packed pid, path and arguments
my %held = held_calls();         # of a check
my $watching;                    # its filter
my $hearing;                     # where a check that starts sends its listener
# Of the running check: why it cannot pass, paths that it made, folders that it entered by links, folders that it wrote in.
my ($doubt, %made, %linked, %places) = ('');
my %starting;                    # of the running check: pid => the program of the root that it is about to start
my %given = map { $_ => 1 } qw(/ /home /usr /usr/local /run /srv /opt /tmp /var /home/agent);    # folders of every session
my ($home, $cwd) = ('/', '/');
my $inbox = '';                  # bytes received that are not a whole frame yet
my %pipes;                       # fileno => read end of an output pipe that a process still has open
my ($head, $tail, $total) = ('', '', 0);    # output since the last reply
my ($state_end, $state) = (undef, '');      # read end of the running command's state, and what it sent
my ($feed, @parts, $mark);                  # write end of its shell's text, what makes the next parts, the end's mark
my $is_fed;                                 # the last part is unread, or the next one is for a shell that still waits
my $is_patient;                             # output and state are read later: most commands have ended by then
my ($child, $status);
open(my $random, '<', '/dev/urandom') or die "/dev/urandom: $!\n";
my $shell = copy_of_shell();
# A folder of root's with two links: `sh` to $SCRIPT_FD, as a shell's messages begin with the name of its script, and
# `bin/sh` to $SHELL_FD.
my ($links) = grep { -l "$_/sh" } qw(/dev/shell /usr/lib/shell);
$links or die "The root has no /usr/lib/shell: build it again with `manage.py sandbox build`\n";

while (1) {
    my ($kind, @field) = request();
    if    ($kind eq 'L') { @limit{qw(output pids nproc memory)} = map { 0 + $_ } @field }
    elsif ($kind eq 'D') { folder($field[0], oct $field[1]) or refuse("$field[0]: $!") }
    elsif ($kind eq 'F') { fixture(@field) }
    elsif ($kind eq 'V') { $env{ $field[0] } = $field[1] }
    elsif ($kind eq 'S') { restrict($field[1]) if $field[0] == $machine }
    elsif ($kind eq 'G') { $home = $cwd = $field[0]; reply('R') }
    elsif ($kind eq 'X') { command(@field) }
    elsif ($kind eq 'C') { check(@field) }
    elsif ($kind eq 'E') { edit(@field) }
    else                 { fail("a request of kind '$kind'") }
}

# ---- frames: 4 bytes of length (big endian), 1 byte of kind, then fields, each after 4 bytes of length

sub reply {
    my ($kind, @field) = @_;
    write_all($out, pack('N/a*', $kind . pack('(N/a*)*', @field))) or exit 1;
}

sub write_all {
    my ($file, $bytes) = @_;
    for (my $at = 0; $at < length $bytes;) {
        $at += syswrite($file, $bytes, length($bytes) - $at, $at) || return 0;
    }
    return 1;
}

sub refuse { reply('N', $_[0]); exit 0 }
sub fail   { reply('B', $_[0]); exit 1 }

sub request {
    while (1) {
        if (length $inbox >= 4) {
            my $length = unpack('N', $inbox);
            fail("a frame of $length bytes") if $length < 1 or $length > $FRAME_MOST;
            if (length $inbox >= 4 + $length) {
                my $body = substr($inbox, 4, $length);
                substr($inbox, 0, 4 + $length, '');
                return (substr($body, 0, 1), unpack('(N/a*)*', substr($body, 1)));
            }
        }
        pump(undef);
    }
}

# ---- limits, set before the first command

# Drops every capability and refuses the system calls of seccomp.py, for the supervisor and every child.
sub restrict {
    my $program = shift;
    for (my $capability = 0; syscall($call{prctl}, 24, $capability, 0, 0, 0) == 0; $capability++) { }    # bounding
    syscall($call{prctl}, 47, 4, 0, 0, 0);                                                               # ambient
    my ($header, $none) = (pack('LL', 0x20080522, 0), pack('L6', (0) x 6));
    syscall($call{capset}, $header, $none) == 0 or fail("capset: $!");
    my $filter = pack('S x6 P', length($program) / 8, $program);
    syscall($call{prctl}, 22, 2, $filter, 0, 0) == 0 or fail("seccomp: $!");
    $listener = listen_for_programs();
    $can_listen = $listener ? 1 : 0;
}

# ---- fixtures

sub folder {    # `mkdir -p` that follows no link
    my ($path, $mode) = @_;
    my $sofar = '';
    for my $name (grep { length } split m{/}, $path) {
        $sofar .= "/$name";
        $given{$sofar} = 1;
        next if lstat($sofar) && -d _;
        mkdir($sofar, 0755) or return 0;
        chmod($mode, $sofar) if defined $mode && $sofar eq $path;
    }
    return 1;
}

sub fixture {
    my ($path, $mode, $content) = @_;
    my $slash = rindex($path, '/');
    refuse("$path: no folder") if $slash < 1 || $slash == length($path) - 1;
    folder(substr($path, 0, $slash)) or refuse("$path: $!");
    sysopen(my $file, $path, $O_NEW | $call{O_NOFOLLOW}, 0600) or refuse("$path: $!");
    write_all($file, $content) && chmod(oct $mode, $file) && close($file) || refuse("$path: $!");
    $fixtures .= pack('N/a*', pack('(N/a*)3', $path, $mode, $content));
    push @fixture_paths, $path;
    remember_program($path, $mode, $content);
}

# ---- processes

# A fork bomb left running would let no command run again: with fewer than 8 processes free, all are killed first.
sub make_room {
    return '' if !$limit{pids} || waitpid(-1, $WNOHANG) < 0;    # without a child there is no other process
    opendir(my $proc, '/proc') or fail("/proc: $!");
    my $count = grep { /^\d/ } readdir $proc;
    return '' if $count <= $limit{pids} - 8;
    sweep();
    return "sh: too many processes: all that were running have been killed\n";
}

# Enters the next command's folder and returns its environment.
sub enter {
    return { %env, PWD => chdir $cwd ? $cwd : chdir $home ? $home : chdir '/' ? '/' : '' };    # removed, or not permitted
}

# Forks, lets the child `$exec`, and waits for its end. `@childs` are descriptors that only the child needs.
sub run {
    my ($milliseconds, $own_env, $exec, @childs) = @_;
    my $began = now();
    pipe(my $read, my $write) or fail("pipe: $!");
    $pipes{ fileno $read } = quiet($read);
    # Before the fork: in the child each write to memory would first copy a page.
    # In order, as a listing of the variables shows it: a replay is compared by it.
    %ENV = map { $_ => $own_env->{$_} } sort keys %$own_env;
    ($child, $status) = (undef, undef);
    set_oom_score(1000);    # out of memory, the kernel kills the highest score first
    $child = fork_or_make_room();
    become($write, $exec) if $child == 0;
    set_oom_score($own_oom_score);
    close $_ for $write, @childs;
    hear_check() if $hearing;
    my $timed_out = 0;
    $is_patient = 1;
    until (defined $status) {
        my $left = $milliseconds * 1000 - (now() - $began);
        if ($left > 0) { pump($left); next }
        $timed_out = 1;
        sweep();
        $status = 9 unless defined $status;
    }
    my $took = now() - $began;
    drain();
    $is_patient = 0;
    return { code => $status & 127 ? 128 + ($status & 127) : $status >> 8, timed_out => $timed_out, took => $took };
}

sub set_oom_score { syswrite($oom_score, $_[0]) }

sub reply_result {
    my ($result, $left, $note, @more) = @_;
    my $half = $limit{output} / 2;
    substr($tail, 0, length($tail) - $half, '') if length $tail > $half;
    my $cut = $total - length($head) - length($tail);
    reply('D', $result->{code}, $result->{timed_out}, $left, $result->{took}, $cut, $cwd, $note . $head, $tail, @more);
    forget_output();
}

sub forget_output { ($head, $tail, $total) = ('', '', 0) }

# In the child, which is not dumpable before `$exec`: until then its memory is the supervisor's.
sub become {
    my ($write, $exec) = @_;
    close $_ for $in, $out, grep { $_ } $listener;
    syscall($call{setsid});
    syscall($call{dup3}, fileno $null,  0, 0);
    syscall($call{dup3}, fileno $write, 1, 0);
    syscall($call{dup3}, fileno $write, 2, 0);
    my $none = pack('Q', 0);
    syscall($call{rt_sigprocmask}, $SIG_SETMASK, $none, 0, 8);
    set_limit($RLIMIT_NPROC, $limit{nproc}) if $limit{nproc};
    set_limit($RLIMIT_AS, $limit{memory}) if $limit{memory};
    $exec->();
    syswrite(STDERR, "sh: $!\n");
    syscall($call{prctl}, 1, 9, 0, 0, 0);
    kill 9, $$;
}

sub set_limit {
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
    fail("fork: $!");
}

# Kills every process of the agent and waits for its end. Signal 9 to -1 reaches the whole PID namespace but us, a fork
# that races with it fails, and orphans become our children: "no child left" proves that none is left.
sub sweep {
    while (kill(9, -1), (my $pid = waitpid(-1, 0)) > 0) { ended($pid) }
}

# A descriptor that says which children ended, in place of a handler.
sub signals_of_children {
    my $blocked = pack('Q', 1 << ($SIGCHLD - 1));
    syscall($call{rt_sigprocmask}, $SIG_BLOCK, $blocked, 0, 8) == 0 or die "sigprocmask: $!\n";
    my $number = syscall($call{signalfd4}, -1, $blocked, 8, 0x80000 | $O_NONBLOCK);
    $number >= 0 or die "signalfd: $!\n";
    open(my $signals, '<&=', $number) or die "signalfd: $!\n";
    return $signals;
}

sub ended { $status = $? if defined $child && $_[0] == $child }

# ---- waiting

# Waits until something can be read, for at most this long (undef: without end), and reads it.
sub pump {
    my $microseconds = shift;
    my $bits = '';
    my $heard = defined $microseconds || $total < $IDLE_MOST;    # a writer that floods an idle session blocks
    # select would return at once for a shell that has not read yet, or a listener that has nothing to say, and for each
    # line of output: only the others are waited for, some milliseconds.
    my ($eater, $teller) = ($is_fed ? undef : $feed, $is_silent ? undef : $listener);
    my @output = $is_patient ? () : ($heard ? values %pipes : (), $state_end || ());
    $microseconds = $PATIENCE if $is_fed || $is_silent || $is_patient;
    ($is_fed, $is_silent) = (0, 0);
    vec($bits, fileno $_, 1) = 1 for $in, $signals, @output, $teller || ();
    my $hungry = '';
    vec($hungry, fileno $eater, 1) = 1 if $eater;
    my $seconds;
    { BEGIN { $^H &= ~1 } $seconds = $microseconds / 1e6 if defined $microseconds; }
    my $found = select(my $ready = $bits, $hungry, undef, $seconds);
    $is_patient = 0 unless $found;
    return if $found <= 0;
    look_at_call() if $teller && vec($ready, fileno $teller, 1);
    if (@output) {
        vec($ready, $_, 1) && take_output($_) for keys %pipes;
        take_state() if $state_end && vec($ready, fileno $state_end, 1);
    }
    if (vec($ready, fileno $signals, 1)) {
        sysread($signals, my $ignored, 1024);
        while ((my $pid = waitpid(-1, $WNOHANG)) > 0) { ended($pid) }
    }
    feed_shell() if $eater && vec($hungry, fileno $eater, 1);
    if (vec($ready, fileno $in, 1)) {
        sysread($in, $inbox, $READ, length $inbox) or exit 0;    # without the other end the sandbox ends
    }
}

# Reads what is in the pipes now, with a limit: a background process may write without end.
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
    delete $pipes{$number} if defined $count && $count == 0;    # no process has it open any more
    return 0 unless $count;
    $is_patient = $count < $READ / 2;    # a writer of much would wait for it
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
    $state_end = undef if defined $count && $count == 0;    # or select would return at once until the shell ends
    return $count;
}

sub fresh_name { sysread($random, my $bytes, 16) == 16 or fail("/dev/urandom: $!"); return unpack('H*', $bytes) }

sub move_up {
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
