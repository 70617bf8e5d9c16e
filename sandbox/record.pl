# The part of supervisor.pl that records which programs of the scenario were really executed, with what arguments.
#
# A filter of system calls holds each process that starts a program at `set_tid_address`, which the loader calls once,
# until the supervisor has looked at it. By then /proc has what the kernel executes, and no line of the program has run.
# Nothing that an agent writes, names or connects to gets into the record:
# - The executable is the kernel's link /proc/PID/exe, from the read-only root, and the interpreter that the program's
#   first line names. The call comes from the loader, so the process has not changed its arguments since.
# - The file that it reads has the content of the fixture, at any path: a copy is the program, a changed one is not.
# - Options with which a shell runs something else (`-n`, `-c`), and variables that load code into it, are no run.
# A shell that reads the text itself (`. program`, `sh < program`) starts no program.

# Without a kernel that lets a process listen (gVisor) there is no listener and no record.
sub listen_for_programs {
    my ($call, $notify, $allow) = ($call{set_tid_address}, 0x7fc00000, 0x7fff0000);
    my $filter = pack('(SCCL)4', 0x20, 0, 0, 0, 0x15, 0, 1, $call, 6, 0, 0, $notify, 6, 0, 0, $allow);
    my $number = listen_by($filter);
    return if $number < 0;
    open(my $listening, '+<&=', $number) or die "listener: $!\n";
    return $listening;
}

# Adds a filter to this process and returns the number of its listener.
sub listen_by {
    my $filter = shift;
    my $program = pack('S x6 P', length($filter) / 8, $filter);
    return syscall($call{seccomp}, 1, 8, $program);    # SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER
}

sub look_at_call {
    my $notice = "\0" x 80;
    $is_silent = !ioctl($listener, 0xC0502100, $notice);
    return if $is_silent;    # its process was killed meanwhile, or the last one that has the filter is ending
    my ($id, $pid, $number, $at, @argument) = (unpack('QLLlLQQ6', $notice))[0, 1, 3, 5 .. 11];
    $is_heard = 1;
    watch($pid, $number, @argument) if $is_checked;
    my ($path, @arguments) = $is_checked ? () : program_of($pid, $at);
    if (defined $path && ioctl($listener, 0x40082102, my $same = pack('Q', $id))) {
        my $run = pack('(N/a*)*', $pid, $path, @arguments);
        push @runs, $run if ($runs_size += 4 + length $run) < $RUNS_MOST;
    }
    ioctl($listener, 0xC0182101, my $continue = pack('QqlL', $id, 0, 0, 1));
}

# The path of the fixture that a process executes, and its arguments; nothing if it executes none.
sub program_of {
    my ($pid, $at) = @_;
    my $executable = readlink("/proc/$pid/exe") // return;
    my $is_of_root = $executable =~ m{\A/(?:usr/(?!local/)|s?bin/|lib\w*/)};
    my $kind = $is_of_root ? kind_of($executable) : '';
    return unless $programs{$kind};
    my (undef, @words) = split /\0/, text_of("/proc/$pid/cmdline"), -1;
    pop @words;    # what is after the last NUL
    my $file = $kind eq 'sh' ? script_of(\@words) : $kind ? operand_of($kind, \@words) : "/proc/$pid/exe";
    my $path = defined $file ? fixture_like($kind, $file, $file =~ m{\A/} ? $file : "/proc/$pid/cwd/$file") : undef;
    return unless defined $path;
    # Variables that load other code into a program, or let it run none of its own.
    return if text_of("/proc/$pid/environ") =~ /(?:\A|\0)(?:LD_|BASH_(?:ENV=|FUNC_)|SHELLOPTS=|BASHOPTS=|PERL5|PYTHON
        |MAKEFILES=|(?:GNU)?MAKEFLAGS=[^\0 ]*[nqthv])/x;
    my $is_loaders = grep { /\A(\w+)-(\w+) .*\/ld[^\/]*\n?\z/ && hex $1 <= $at && $at < hex $2 }
        split /\n/, text_of("/proc/$pid/maps");
    return $is_loaders || !$kind ? ($path, @words) : ();
}

# The script among a shell's words, of which its arguments are left; undef with an option that runs something else.
sub script_of {
    my $words = shift;
    while (@$words && $words->[0] =~ /\A[-+](?:[abCefhmuvx]*(o)?|-)\z/) {
        my $option = shift @$words;
        return shift @$words if $option =~ /\A-?-\z/;
        return if $1 && (shift @$words // '') !~ /\A(?:errexit|nounset|xtrace|verbose|noglob|pipefail|posix)\z/;
    }
    return @$words && $words->[0] !~ /\A[-+]/ ? shift @$words : undef;
}

# The script among another interpreter's words: it comes after the options of the program's own first line alone.
sub operand_of {
    my ($kind, $words) = @_;
    my %options = map { $_->{options} => 1 } @{ $programs{$kind} };
    for my $count (0 .. 4) {
        next if $count >= @$words || !$options{ join q{ }, @$words[0 .. $count - 1] };
        return (splice @$words, 0, $count + 1)[-1];
    }
    return;
}

# The fixture of this kind that has the content of a file; of several, the one with its path or name.
sub fixture_like {
    my ($kind, $named, $file) = @_;
    my $size = -s $file // return;
    my @alike = grep { $size == length $_->{content} } @{ $programs{$kind} } or return;
    my $content = text_of($file);
    @alike = grep { $content eq $_->{content} } @alike or return;
    my ($name) = $named =~ m{([^/]+)\z};
    my ($same) = grep { $_->{path} eq $named } @alike;
    $same //= (grep { $_->{path} =~ m{/\Q$name\E\z} } @alike)[0] // $alike[0];
    return $same->{path};
}

sub remember_program {
    my ($path, $mode, $content) = @_;
    my ($interpreter, $options) = $content =~ /\A#![ \t]*(\S+)[ \t]*([^\n]*?)[ \t]*(?:\n|\z)/;
    return unless defined $interpreter || $mode & oct 111;
    ($interpreter, $options) = $options =~ /\A(?:-S[ \t]+)?(\S+)[ \t]*(.*)/
        if defined $interpreter && $interpreter =~ m{/env\z};
    my $kind = $content =~ /\A\x7fELF/ ? '' : kind_of($interpreter // '/bin/sh');
    push @{ $programs{$kind} }, { path => $path, content => $content, options => $options // '' };
}

sub kind_of {
    my $path = shift;
    my ($name) = $path =~ m{([^/]+)\z};
    $name =~ s/[\d.-]+\z//;
    return $name =~ /\A(?:da|ba|a|k|z)?sh\z/ ? 'sh' : $name =~ /awk\z/ ? 'awk' : $name;
}

# What a small file has. It may be a FIFO, at which opening would wait.
sub text_of {
    my $file = shift;
    sysopen(my $opened, $file, $O_NONBLOCK) or return '';
    my $text = '';
    return $text unless -f $opened;
    while (length $text < $READ_MOST && sysread($opened, $text, $READ, length $text)) { }
    return $text;
}

# A program in memory with its data: the runs, and the fixtures as they were. The checker's shell has it on $STATE_FD.
sub records_for_checker {
    my $text = shift;
    my $name = 'record';
    my $number = syscall($call{memfd_create}, $name, 1);
    $number >= 0 or fail("memfd_create: $!");
    open(my $file, '+<&=', $number) or fail("memfd: $!");
    my $data = pack('(N/a*)3', is_recorded(), pack('(N/a*)*', @runs), $fixtures);
    write_all($file, "$text\n__END__\n$data") or fail("memfd: $!");
    return $file;
}

# A C library that makes no such call when it starts is as good as no listener.
sub is_recorded { return $can_listen && ($is_heard || !$is_used) ? 1 : 0 }
