# The part of supervisor.pl that watches what a check writes, so that nothing that an agent left can stand in its way.
#
# The checker has no file system of its own: a container without capabilities mounts none. So its programs have a filter
# of system calls that holds each call that opens a file for writing, makes or removes a name, or enters a folder, until
# the supervisor has looked at it. Names may be computed: the checker's text is not read. A check that passes has failed:
# - if it wrote through a link of the agent's, or to something of the agent's that it did not replace: a pipe, a folder, a
#   closed file, a file with other names, a file that it added to;
# - if it made something in a folder that the agent left in a temporary folder, a folder or a link in any other folder
#   that the agent made, or moved something onto a folder: `cp -r` and `mv` put what they bring into a folder that is there;
# - if it could not write in a folder, or the folder was nearly full, then or later;
# - if a program of the root did not start (its arguments are the agent's, and may be too long);
# - if a program asked for more memory than a sandbox has, or the kernel killed one for lack of memory or started none for
#   lack of processes.
# Temporary folders are the check's own: they have room when it begins, and what the agent left there under a name that
# the check makes is removed first.

# Number => what the call does, and where its arguments have the folder's descriptor (-1: nowhere), the path and flags.
sub held_calls {
    my @calls = $machine == 0x3e
        ? qw(2:open:-1:0:1 257:open:0:1:2 85:open:-1:0 76:open:-1:0 80:enter:-1:0 83:folder:-1:0 258:folder:0:1
             59:start:-1:0 82:move:-1:1 264:move:2:3 316:move:2:3 86:name:-1:1 265:name:2:3 88:name:-1:1 266:name:1:2 133:name:-1:0
             259:name:0:1 87:remove:-1:0 263:remove:0:1)
        : qw(56:open:0:1:2 45:open:-1:0 49:enter:-1:0 34:folder:0:1 276:move:2:3 38:move:2:3 37:name:2:3 36:name:1:2
             33:name:0:1 35:remove:0:1 221:start:-1:0);
    return map { my ($number, @how) = split /:/; ($number => \@how) } @calls;
}

# The filter: set_tid_address for the record, the calls above, and memory without content of a gigabyte or more.
sub watching_filter {
    my ($load, $is, $above, $least, $has, $return) = (0x20, 0x15, 0x25, 0x35, 0x45, 6);
    my ($notify, $allow) = map { [$return, 0, 0, $_] } 0x7fc00000, 0x7fff0000;
    my $folder = $call{O_NOFOLLOW} / 2 | 0x200000;    # O_DIRECTORY, O_PATH
    my @program = ([$load, 0, 0, 0], [$is, 0, 1, $call{set_tid_address}], $notify, [$is, 0, 1, 437], [$return, 0, 0, 0x50026]);
    for my $number (sort keys %held) {
        my $flags = $held{$number}[3];
        push @program, defined $flags
            ? ([$is, 0, 6, $number], [$load, 0, 0, 16 + 8 * $flags], [$has, 2, 0, $WRITES], [$has, 2, 0, $call{O_NOFOLLOW}],
               [$has, 0, 1, $folder], $notify, $allow)
            : ([$is, 0, 1, $number], $notify);
    }
    my @is_large = map { ([$load, 0, 0, $_ + 4], [$above, 2, 0, 0], [$load, 0, 0, $_], [$least, 0, 1, 1 << 30]) } 24, 32;
    push @program, [$is, 0, 10, $call{mmap}], [$load, 0, 0, 48], [$is, 0, 7, 0xffffffff], [$load, 0, 0, 32], [$is, 5, 0, 0],
        @is_large[0 .. 3], $notify, $allow;
    push @program, [$is, 0, 6, $call{mremap}], @is_large[4 .. 7], $notify, $allow;
    return pack('(SCCL)*', map { @$_ } @program, $allow);
}

# Receives the filter's listener from the check's process.
sub hear_check {
    my $number = pass_descriptor($call{recvmsg}, $hearing, -1);
    open($listener, '+<&=', $number) or fail("listener: $!");
    $hearing = undef;
}

# Sends or receives a descriptor with one byte.
sub pass_descriptor {
    my ($way, $socket, $number) = @_;
    my ($byte, $control) = ('.', pack('Q l l l x4', 20, 1, 1, $number));    # SOL_SOCKET, SCM_RIGHTS
    my $vector  = pack('P Q', $byte, 1);
    my $message = pack('x16 P Q P Q x8', $vector, 1, $control, length $control);
    syscall($way, fileno $socket, $message, 0x40000000) == 1 or fail("the check's listener: $!");    # close on exec
    return unpack('x16 l', $control);
}

# Looks at a call of the check before the kernel executes it. The first doubt is kept.
sub watch {
    my ($pid, $number, @argument) = @_;
    $doubt ||= full_folder();
    return delete $starting{$pid} if $number == $call{set_tid_address};    # the loader calls it: the program has started
    my ($does, $at, $path_at, $flags_at) = @{ $held{$number} || [] };
    if (!$does) { $doubt ||= 'a program asked for too much memory'; return }
    return if $does eq 'remove';
    my $named = text_in_memory($pid, $argument[$path_at]);
    if (!defined $named) { $doubt ||= 'what it wrote cannot be seen' if $does ne 'start'; return }    # its first shell
    my $descriptor = $at < 0 ? -100 : unpack('l', pack('L', $argument[$at] & 0xffffffff));
    my $from = $named =~ m{\A/} ? '' : "/proc/$pid/" . ($descriptor == -100 ? 'cwd' : "fd/$descriptor");
    my $path = length $from ? (readlink($from) // '') . "/$named" : $named;
    return if $path =~ m{\A/+(?:dev|proc|nonexistent)/};
    if ($does eq 'start') {
        $starting{$pid} = $path if $path =~ m{\A/(?:usr/(?!local/)|s?bin/)} && -x $path;
        return;
    }
    my $flags = defined $flags_at ? $argument[$flags_at] : 0;
    my ($way, $link) = way_to($path);
    $link ||= $from if length $from && $linked{ inode_of($from) };
    if ($does eq 'enter' || defined $flags_at && !($flags & $WRITES)) {
        $linked{ inode_of($way) } = 1 if $link || -l $way;
    } elsif ($way ne '/') {
        $doubt ||= $link ? 'it wrote through a link' : doubt_about($does, $way, $flags);
    }
}

# Why writing to a path would not do what the check wants.
sub doubt_about {
    my ($does, $path, $flags) = @_;
    my ($folder) = $path =~ m{\A(.*)/}s;
    $folder = '/' unless length $folder;
    my $is_there = lstat $path && !$made{$path};
    return '' if $is_there && $does eq 'folder' && $given{$path};
    if ($is_there && $path =~ m{\A/(?:tmp|var/tmp)/}) {
        within($folder, sub { erase($folder, $path) or fail("$path: $!") });
        $is_there = 0;
    }
    my ($left) = $path =~ m{\A((?:/var)?/tmp/[^/]+)/};
    $left = $folder if $does =~ /\A(?:folder|name)\z/ && !$given{$folder};
    return "$left was there already" if $left && !$made{$left} && lstat $left;
    $made{$path} = 1 unless $is_there && $does eq 'name';    # which makes nothing then
    return "$folder cannot be written to" unless -d $folder && -w _;
    $places{ (stat _)[0] } = $folder;
    my $full = full_folder();
    return $full if $full || !$is_there || $does eq 'name';
    lstat $path;
    return -d _ ? "$path was there already" : '' if $does eq 'move';
    my $is_replaced = $does eq 'open' && $flags & 0x200 && -f _ && (lstat _)[3] == 1 && -w _;    # O_TRUNC
    return $is_replaced ? '' : "$path was there already";
}

# A path without `.` and `..`, and the first link on the way to it.
sub way_to {
    my $path = shift;
    my ($way, $link) = ('', '');
    for my $name (grep { length && $_ ne '.' } split m{/}, $path) {
        $link ||= $way if -l $way;
        $way = $name eq '..' ? $way =~ s{/[^/]*\z}{}r : "$way/$name";
    }
    return ($way || '/', $link);
}

sub inode_of { return join q{:}, (stat $_[0])[0, 1] }

# What a process has in its memory from there to the next NUL.
sub text_in_memory {
    my ($pid, $address) = @_;
    sysopen(my $memory, "/proc/$pid/mem", 0) or return;
    my $text = '';
    return unless sysseek($memory, $address, 0) && sysread($memory, $text, 4096);
    my $length = index $text, "\0";
    return $length < 0 ? undef : substr $text, 0, $length;
}

# A folder that the check has written in, and that is nearly full of bytes or of files.
sub full_folder {
    for my $folder (values %places) {
        return "$folder is full" if is_short_of_room($folder, 32);
    }
    return '';
}

# Whether less than this part of a folder's file system is free.
sub is_short_of_room {
    my ($folder, $part) = @_;
    my $found = "\0" x 120;
    syscall($call{statfs}, my $name = $folder, $found) == 0 or return 0;
    my ($blocks, $free, $files, $free_files) = (unpack('q7', $found))[2, 4, 5, 6];
    return $free < $blocks / $part || $files && $free_files < $files / $part;
}

# How often the kernel killed a program for memory or let none start, over the whole session.
sub shortages {
    my $count = 0;
    for my $events (@events) {
        sysseek($events, 0, 0);
        sysread($events, my $text, 4096);
        $count += $1 if $text =~ /^oom_kill (\d+)/m || $text =~ /\Amax (\d+)/;
    }
    return $count;
}

# Temporary folders are there, open, and have room: one that is nearly full loses what the agent left in it.
sub open_temporary {
    for my $folder (qw(/tmp /var/tmp)) {
        my ($parent) = $folder =~ m{\A(.*)/};
        within($parent || '/', sub {
            unlink $folder if lstat $folder && !-d _;
            mkdir $folder;
            chmod 01777, $folder;
        });
        prune($folder, sub { 0 }) if -d $folder && is_short_of_room($folder, 4);
    }
}
