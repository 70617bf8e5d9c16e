# The part of supervisor.pl that runs the checker, with nothing of the agent's in its way.
#
# Its text arrives only now, and every process that could read or change it is killed first. It runs as the agent's user
# and sees the agent's files where they are, since it has to judge them. What the agent could still decide is which code
# the checker's programs load, so whatever they search without being asked is emptied or out of the agent's reach:
# - the read-only root has the programs of its PATH, their libraries, their settings and locales;
# - its environment is session.py's: it points HOME, TMPDIR and the interpreters' settings away from the agent's files;
# - from the folders that programs search by themselves (/usr/local, the hidden files of the home) everything is removed
#   that is neither a fixture nor named in the checker's own text;
# - watch.pl watches what it writes.

sub check {
    my ($text, $milliseconds, $reader, %own) = @_;
    sweep();
    $is_checked = 1;
    %pipes = ();
    forget_output();
    clear_search_paths($text);
    open_temporary();
    my %leads = agents_links();
    ($doubt, %made, %linked, %places) = ('');
    %starting = ();
    $cwd = $home;
    # `~` is the agent's home for the checker's own shell, but no program that it starts inherits it.
    my $own_env = { %own, PWD => enter()->{PWD}, TMPDIR => fresh_folder() };
    my $record = records_for_checker($reader);
    my ($is_recorded, $shortage) = (is_recorded(), shortages());
    my $begin = 'HOME=' . quoted($home) . ';';
    $begin .= qq{$_() { /usr/bin/perl /proc/self/fd/$STATE_FD $_ "\$@"; };} for qw(asked unchanged);
    my $telling;
    $watching ||= watching_filter();
    $listener = undef;    # the kernel permits one listener in a line of processes
    socketpair($hearing, $telling, 1, 1, 0) or fail("socketpair: $!") if $can_listen;
    my $result = run($milliseconds, $own_env, sub {
        pass_descriptor($call{sendmsg}, $telling, listen_by($watching)) if $telling;
        syscall($call{dup3}, fileno $record, $STATE_FD, 0);
        exec { '/bin/sh' } 'sh', '-c', $begin . $text;
    }, $telling || ());
    sweep();
    $listener = undef;    # or select would return at once: nobody is left to be heard
    fail($head) if !$is_recorded && $result->{code} == 137 && $head =~ /^asked: /m;
    $doubt ||= full_folder() || (shortages() == $shortage ? '' : 'a program found no memory or no process');
    $doubt ||= "$_ did not start" for sort values %starting;
    my @written = grep { index($_, $own_env->{TMPDIR}) != 0 } sort keys %made;
    $doubt ||= doubt_about_links(\%leads, @written);
    my $is_void = $doubt && !$result->{code};
    $result->{code} = 125 if $is_void;
    my $note = $is_void ? "sh: the check does not count: $doubt\n" : '';
    reply_result($result, 0, $note, $is_recorded, pack('(N/a*)*', @runs), pack('(N/a*)*', @written));
}

# The links below the agent's folders, by where they lead. One into /proc or to a descriptor is removed: it is no state,
# but shows each program its own data, so that `cmp - result` would compare its input with itself.
sub agents_links {
    my %leads;
    my @folders = ($home, qw(/srv /opt /usr/local /var /tmp));
    while (defined(my $folder = pop @folders)) {
        within($folder, sub {
            opendir(my $listing, $folder) or return;    # gone, or too deep to be named
            for my $path (map { "$folder/$_" } grep { $_ ne '.' && $_ ne '..' } readdir $listing) {
                if (!-l $path) { push @folders, $path if -d _; next }
                my $end = end_of($path);
                if ($end =~ m{\A/(?:proc(?:/|\z)|dev(?:/fd|/std\w+)?\z)}) { unlink $path }
                else                                                       { $leads{$end} = $path }
            }
        });
    }
    return %leads;
}

# Where a path leads, up to the first part that depends on the process that reads it. Empty if it leads in a circle.
sub end_of {
    my ($way, $links, @rest) = ('', 0, split m{/}, shift);
    while (@rest) {
        my $name = shift @rest;
        if ($name eq '..') { $way =~ s{/[^/]*\z}{}; next }
        next if !length $name || $name eq '.';
        $way .= "/$name";
        return $way if $way =~ m{\A/(?:proc|dev/(?:fd|std\w+))\z};
        next unless -l $way;
        return '' if ++$links > 40;
        my $to = readlink($way) // '';
        $way = $to =~ m{\A/} ? '' : $way =~ s{/[^/]*\z}{}r;
        unshift @rest, split m{/}, $to;
    }
    return $way || '/';
}

# Why a check that wrote these paths may have read them as results.
sub doubt_about_links {
    my ($leads, @written) = @_;
    for my $path (@written) {
        for (my $part = $path; length $part; $part =~ s{/[^/]*\z}{}) {
            return "the link $leads->{$part} leads to what it wrote" if $leads->{$part};
        }
    }
    return '';
}

sub clear_search_paths {
    my $text   = shift;
    my $shared = '/usr/local';
    my @named  = $text =~ m{($shared/[\w.+@%,:=~/-]+)}g;
    my $usual  = qr{/(?:bin|etc|games|include|lib\w*|man|sbin|share|src)\z};    # never links: what they lead to stays
    prune($shared, sub { !-l $_[0] || $_[0] !~ $usual && is_of($_[0], @named) }, sub {
        prune_to($_, @named) for grep { -d && !-l } @_;
    });
    my @hidden = $text =~ /(?<![\w.*?\])}+-])(\.\w[\w.+@%,:=~-]*|node_modules)/g;
    my @own = (@fixture_paths, map { "$home/$_" } @hidden);
    prune($home, sub { $_[0] !~ m{/(?:\.[^/]*|node_modules)\z} || is_of($_[0], @own) });
}

# Removes what is neither named nor a fixture. A folder that is named is kept whole, one on the way to it is not.
sub prune_to {
    my ($folder, @named) = @_;
    prune($folder, sub { is_of($_[0], @named) || !-l $_[0] && is_of($_[0], @fixture_paths) }, sub {
        prune_to($_, @named) for grep { -d && !-l && is_of($_, @named) < 2 } @_;
    });
}

# 2 if `path` is one of these, or begins like it: a checker may name `/usr/local/lib/oven-*`. 1 if one of them is in it.
sub is_of {
    my ($path, @own) = @_;
    my ($parent, $found) = (rindex($path, '/') + 1, 0);
    for my $own (map { s{/+\z}{}r } @own) {
        return 2 if length $own > $parent && index($path, $own) == 0;
        $found = 1 if index($own, "$path/") == 0;
    }
    return $found;
}

# Removes the entries of a folder that `$is_kept` does not accept, and does `$then` with the others.
sub prune {
    my ($folder, $is_kept, $then) = @_;
    within($folder, sub {
        my (@kept, @doomed);
        push @{ $is_kept->($_) ? \@kept : \@doomed }, $_ for map { "$folder/$_" } names_in($folder);
        erase($folder, @doomed) or fail("$folder: $!");
        $then->(@kept) if $then;
    });
}

# Does `$work` in a folder whose mode may hide its entries; it is the same afterwards.
sub within {
    my ($folder, $work) = @_;
    my $mode = ((lstat $folder)[2] // 0) & oct 7777;
    my $is_open = ($mode & oct 700) == oct 700;
    chmod $mode | oct 700, $folder unless $is_open;
    $work->();
    chmod $mode, $folder unless $is_open;
}

# Makes a path what it is to be. A file that is there keeps its inode and its other names.
sub edit {
    my ($path, $kind, $mode, $size, @pieces) = @_;
    my ($folder) = $path =~ m{\A(/.+)/}s or return;
    my $parent = '';
    mkdir $parent .= "/$_" for $kind ? grep { length } split m{/}, $folder : ();
    within($folder, sub {
        my $is_alike = lstat $path && ($kind eq 'file' ? -f _ : $kind eq 'folder' && -d _);
        return unless $is_alike || !lstat $path || erase($folder, $path);
        if ($kind eq 'link') { symlink $pieces[0], $path }
        if ($kind eq 'folder' && !$is_alike) { mkdir $path }
        if ($kind eq 'file') {
            chmod 0600, $path if $is_alike && !-w _;
            open(my $file, '>', $path) or return;
            while (my ($piece, $count) = splice @pieces, 0, 2) { write_all($file, $piece x $count) }
            truncate $file, $size;
        }
        chmod oct $mode, $path if $kind eq 'file' || $kind eq 'folder';
    });
}

# Removes these entries of `folder`. What is in a folder is first moved up: paths stay short, however deep they were.
sub erase {
    my ($folder, @doomed) = @_;
    while (defined(my $path = pop @doomed)) {
        if (!lstat $path || !-d _) { unlink $path or return 0; next }
        chmod 0700, $path;
        for my $name (names_in($path)) {
            my $moved = "$folder/." . fresh_name();
            chmod 0700, "$path/$name" if lstat "$path/$name" && -d _;    # or its `..` could not be changed
            rename("$path/$name", $moved) or return 0;
            push @doomed, $moved;
        }
        rmdir $path or return 0;
    }
    return 1;
}

sub names_in {
    my $folder = shift;
    opendir(my $listing, $folder) or fail("$folder: $!");
    return grep { $_ ne '.' && $_ ne '..' } readdir $listing;
}

sub fresh_folder {
    for my $parent (qw(/tmp /var/tmp /run)) {
        my $path = "$parent/." . fresh_name();
        return $path if mkdir $path, 0700 and $made{$path} = 1;
    }
    $doubt = 'no folder takes its temporary files';
    return '/nonexistent';
}
