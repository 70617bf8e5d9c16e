# The part of supervisor.pl about the shell of one command, and what it reports.
#
# The exit code and the time are the kernel's. That the end of the command was reached can only come from the shell, which
# runs the agent's text and could be made to say anything that it can know. So it cannot know it earlier:
# - The shell reads its text from a pipe, in parts of which each is sent when the one before has been read. The part
#   after the command has a mark, made only then, that it must report on $STATE_FD: no command line, environment or file
#   ever has it, and a shell that ended earlier has not received it.
# - Only the shell's parser can read the pipe: its end is a number above 9, which dash's redirections cannot name, is
#   closed in every program that it starts, and nobody may open the pipe once the shell has (mode 0).
# - The shell is a copy of /bin/sh that its user may execute but not read, so the kernel makes it not dumpable: no
#   process of the agent can trace it, or open its memory or descriptors in /proc.
# - A here document without an end would have read the mark as its content. Then the shell also reads the part after
#   it, which otherwise it never does, because the one with the mark ends it. From then on the mark is void.

sub copy_of_shell {
    open(my $original, '<', '/bin/sh') or die "/bin/sh: $!\n";
    my $name   = 'sh';
    my $number = syscall($call{memfd_create}, $name, 1);
    $number >= 0 or die "memfd_create: $!\n";
    open(my $writable, '+<&=', $number) or die "memfd: $!\n";
    while (sysread($original, my $bytes, $READ)) { write_all($writable, $bytes) or die "memfd: $!\n" }
    open(my $copy, '<', "/proc/self/fd/$number") or die "memfd: $!\n";
    (chmod(0111, $writable) && close $writable) || die "memfd: $!\n";    # what is open for writing cannot be executed
    return $copy;
}

# The state that carries over is what the shell reports when it ends: `export -p` (PWD included) on $STATE_FD. An EXIT
# trap reports it, and so does a line after the command, in case the agent sets a trap of its own. No `eval` around the
# command: every message of the shell would name it.
sub command {
    my ($text, $milliseconds) = @_;
    $is_used = 1;
    my $note = make_room();
    my $own_env = enter();
    my $start = "exec $SCRIPT_FD<&-;cd " . quoted($own_env->{PWD} || '/') . ' 2>/dev/null;'
        . (exists $env{OLDPWD} ? 'OLDPWD=' . quoted($env{OLDPWD}) : 'unset OLDPWD')
        . ";trap '{ set +x;export -p;} 2>/dev/null >&$STATE_FD' 0;";
    my $body = (is_open_ended($text) ? 'eval ' . quoted($text) : $text) . "\n";
    pipe(my $script, $feed) or fail("pipe: $!");
    fcntl(quiet($feed), $F_SETPIPE_SZ, $PART) or fail("pipe: $!");    # one page: a part that was read leaves it empty
    $mark = undef;
    @parts = (
        sub { $start },
        sub { chmod(0, $feed) or fail("pipe: $!"); substr($body, 0, $PART, '') },
        (sub { substr($body, 0, $PART, '') }) x ((length($body) - 1) / $PART),
        sub {
            ($mark, $is_fed) = (fresh_name(), 1);    # only a here document without an end reads on
            return "{ set -- \$?;set +aex;export -p;echo .$mark;} 2>/dev/null >&$STATE_FD;exit \$1\n";
        },
        sub { "\n" },
        sub { $mark = undef; '' },
    );
    pipe(my $state_read, my $state_write) or fail("pipe: $!");
    $state_end = quiet($state_read);
    $state = '';
    feed_shell();
    my $result = run($milliseconds, $own_env, sub {
        close $feed if $feed;
        syscall($call{dup3}, fileno $state_write, $STATE_FD, 0);
        syscall($call{dup3}, fileno $script, $SCRIPT_FD, 0);
        syscall($call{dup3}, fileno $shell, $SHELL_FD, 0x80000);
        chdir $links;
        exec { 'bin/sh' } 'sh', 'sh';
    }, $script, $state_write);
    $feed = undef;
    my $left = carry_over() || $result->{timed_out} ? 0 : 1;
    reply_result($result, $left, $note);
}

# Sends the next part to the shell that has read all earlier ones; '' ends its text.
sub feed_shell {
    my $unread = pack('L', 0);
    $is_fed = ioctl($feed, $FIONREAD, $unread) && unpack('L', $unread);
    return if $is_fed;    # a kernel with larger pipes, or the shell has ended
    my $part = @parts ? shift(@parts)->() : '';
    $feed = undef unless length $part && write_all($feed, $part);
}

# Whether the shell would read the line after the command as part of it. Such a command is put into an `eval`.
# Here and in carry_over the text is hostile: every regex takes linear time.
sub is_open_ended {
    my $text = shift;
    my $trimmed = $text =~ /\A(.*\S)/s ? $1 : '';
    return 1 if $trimmed =~ /[\\|&]\z/ || $trimmed =~ /\(\s*+\)\z/;
    my $comment = -1;    # where the last comment after a `|` or `&` begins
    $comment = pos $trimmed while $trimmed =~ /[|&]\s*+(?=#)/g;
    return 1 if $comment > rindex($trimmed, "\n");
    my (%last, %last_after_tabs);    # line => where it last occurs
    my $at = 0;
    for my $line ($text =~ /<</ ? split(/\n/, $text, -1) : ()) {
        $last{$line} = $last_after_tabs{ $line =~ s/\A\t++//r } = $at;
        $at += length($line) + 1;
    }
    while ($text =~ /(?<!<)<<(?!<)(-?)[ \t]*+((?:'[^'\n]*+'|"[^"\n]*+"|[^\s'";|&<>()])++)/g) {
        my ($delimiters, $word) = ($1 ? \%last_after_tabs : \%last, $2);
        $word =~ tr/'"\\//d;
        return 1 unless ($delimiters->{$word} // -1) > pos $text;
    }
    return 0;
}

sub quoted { my $text = shift; $text =~ s/'/'\\''/g; return "'$text'" }

# Reads the shell's variables, each `export NAME='value'` in any of the shell's ways of quoting. If something cannot be
# read (cut by a kill, too long), the earlier state stays. True if the end of the command was reached.
sub carry_over {
    my $text = $state;
    my $reached = defined $mark && $text =~ s/^\.$mark\n(?=export |declare |\z)//m;
    return $reached if length $state >= $STATE_MOST || !length $text;
    my %new;
    while ($text =~ /\G(?:export|declare -x) ([A-Za-z_][A-Za-z0-9_]*+)(=?)/gc) {
        my ($name, $is_set, $value, $in_quotes) = ($1, $2, '', 0);
        until (!$in_quotes && $text =~ /\G\n/gc) {
            if ($text =~ /\G"/gc) { $in_quotes = !$in_quotes; next }
            return $reached unless $in_quotes
                ? $text =~ /\G(?|([^"\\]++)|\\([\$`"\\])|(\\))/gc
                : $text =~ /\G(?|'([^']*+)'|\\(.)|([^\s'"\\]++))/gcs;
            $value .= $1;
        }
        $new{$name} = $value if $is_set;
    }
    return $reached if (pos($text) || 0) != length $text;
    my $folder = delete $new{PWD};
    $cwd = $folder if defined $folder && $folder =~ m{^/};
    %env = %new;
    return $reached;
}
