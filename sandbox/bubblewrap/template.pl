
# ---- the template of bubblewrap's sessions, a part of supervisor.pl
#
# A process in a sandbox of its own, in which no command of an agent runs. It has compiled the supervisor and has the
# root, the devices and the user of every session. So a session costs two forks of it, and no program and no mount of the
# root. A session gets its control groups, its namespaces, its /proc and its writable folders before anything of a
# scenario arrives. Nothing goes from one session to another: the template only reads requests, and each frame goes to
# the session's own supervisor.
#
# A request is one message on STDIN: how many control groups there are, then path and options of each writable folder,
# with a NUL between two words. With it come the session's connection, its stderr, the entrances of its control groups,
# and their counters. STDOUT is a pidfd of the server: the template ends with it, and all sessions end with the template.

# Returns in the supervisor of each session.
sub become_session {
    # What bubblewrap covered there would forbid a /proc of another namespace; each session covers its own.
    syscall($call{umount2}, my $place = $_, 2) for root_only();
    my $signals = signals_of_children();
    while (1) {
        my $bits = '';
        vec($bits, $_, 1) = 1 for 0, 1, fileno $signals;
        select($bits, undef, undef, undef);
        exit 0 if vec($bits, 1, 1);
        if (vec($bits, fileno $signals, 1)) {
            sysread($signals, my $ignored, 1024);
            1 while waitpid(-1, $WNOHANG) > 0;
        }
        next unless vec($bits, 0, 1);
        my ($request, @numbers) = receive_request();
        my $pid = fork;
        print {*STDERR} "fork: $!\n" unless defined $pid;
        return enter_session($request, @numbers) if defined $pid && !$pid;
        syscall($call{close}, $_) for @numbers;
    }
}

sub receive_request {
    my ($request, $control) = ("\0" x 4096, "\0" x 256);
    my $vector  = pack('P Q', $request, length $request);
    my $message = pack('x16 P Q P Q x8', $vector, 1, $control, length $control);
    my $length = syscall($call{recvmsg}, 0, $message, 0x40000000);    # close on exec
    exit 0 if $length <= 0;
    my $size = unpack('Q', $control) - 16;
    return (substr($request, 0, $length), unpack('x16 l' . $size / 4, $control));
}

sub enter_session {
    my ($request, $connection, $stderr, @numbers) = @_;
    my ($entrances, @folders) = split /\0/, $request;
    syscall($call{dup3}, $stderr, 2, 0);
    syscall($call{dup3}, $connection, $_, 0) for 0, 1;
    syscall($call{close}, $_) for $connection, $stderr;
    write_to('>&=', $_, '0') for splice @numbers, 0, $entrances;
    @ARGV = @numbers;
    my $user = $>;
    # Of users, mounts, processes, networks, System V objects, host names and control groups.
    syscall($call{unshare}, 0x7e020000) == 0 or die "No permissions to create new namespaces: $!\n";
    write_to('>', "/proc/self/$_", "$user $user 1\n") for qw(uid_map gid_map);
    my $pid = fork // die "fork: $!\n";
    kill 9, $$ if $pid;    # the child is process 1 of its namespace
    syscall($call{setsid});
    mount_at('/proc', 'proc', 8);    # MS_NOEXEC
    for my $path (-w '/proc/sys/kernel/panic' ? grep { -e } root_only() : ()) {
        mount_at($path, $path, 0x1000);    # MS_BIND
        mount_at($path, $path, 0x1029);    # MS_BIND, MS_REMOUNT, MS_RDONLY, MS_NOEXEC
    }
    while (my ($path, $options) = splice @folders, 0, 2) { mount_at($path, 'tmpfs', 0, $options) }
    socket(my $socket, 2, 2, 0) or die "socket: $!\n";
    ioctl($socket, 0x8914, my $up = pack('a16 s x22', 'lo', 1)) or die "lo: $!\n";
    my $self = syscall($call{pidfd_open}, 1, 0);
    pass_descriptor($call{sendmsg}, \*STDIN, $self);
    syscall($call{close}, $self);
}

sub write_to {
    my ($mode, $path, $text) = @_;
    open(my $file, $mode, $path) or die "$path: $!\n";
    syswrite($file, $text) or die "$path: $!\n";
}

# What root of the machine can write in /proc without any capability, where it is the agent's user.
sub root_only { return map { "/proc/$_" } qw(sys sysrq-trigger irq bus) }

sub mount_at {
    my ($path, $kind, $flags, $options) = (@_, '');
    # MS_NOSUID, MS_NODEV
    syscall($call{mount}, $kind, $path, $kind, $flags | 2 | 4, $options) == 0 or die "$path: $!\n";
}
