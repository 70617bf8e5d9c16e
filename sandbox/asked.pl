# The commands of a checker that read what was recorded, which is appended as data: by records_for_checker, or by the
# test script of an exported Harbor task.
#
# asked [-x] PROGRAM [ARGUMENT ...]   succeeds if the agent ran this program of the scenario with these arguments first;
#                                     with -x, these alone. Without a word it lists the runs.
# unchanged [--except PATH ...]       succeeds if every fixture outside these paths has its first content and mode;
#                                     else it names those that do not.
#
# It is started for each question, so it loads no module: strict.pm and warnings.pm would take longer than the rest.
BEGIN { $^H |= 0x602 }    # what `use strict` would set

binmode DATA;
local $/ = undef;
my ($is_recorded, @parts) = unpack '(N/a*)3', <DATA>;
my ($runs, $fixtures) = map { [ map { [ unpack '(N/a*)*', $_ ] } unpack '(N/a*)*', $_ ] } @parts;
my $command = shift @ARGV;
exit($command eq 'asked' ? !asked(@ARGV) : !unchanged(@ARGV));

sub asked {
    my @wanted = @_;
    if (!$is_recorded) {    # then no answer is right: the checker ends here, without a verdict
        print {*STDERR} "asked: this machine lets nobody record which programs run\n";
        kill 9, 0;    # its process group, which is the checker's
    }
    my $is_exact = @wanted && $wanted[0] eq '-x' && shift @wanted;
    my $program  = shift @wanted;
    if (!defined $program) {
        print join(q{ }, map { s/[^ -~]/?/gr } @$_[1 .. $#$_]), "\n" for @$runs;
        return scalar @$runs;
    }
    for my $run (@$runs) {
        my (undef, $path, @given) = @$run;
        next if $path ne $program && $path !~ m{/\Q$program\E\z};
        next if @given < @wanted || $is_exact && @given > @wanted;
        return 1 unless grep { $given[$_] ne $wanted[$_] } 0 .. $#wanted;
    }
    return 0;
}

sub unchanged {
    my @given = @_;
    my @except = map { s{/+\z}{}r } grep { $_ ne '--except' } @given;
    my $is_same = 1;
    for my $fixture (@$fixtures) {
        my ($path, $mode, $content) = @$fixture;
        next if grep { index("$path/", "$_/") == 0 } @except;
        my $change = change_of($path, oct $mode, $content) or next;
        print "$path $change\n";
        $is_same = 0;
    }
    return $is_same;
}

sub change_of {
    my ($path, $mode, $content) = @_;
    for (my $part = $path; $part =~ s{/[^/]*\z}{} && length $part;) {
        return "is behind the link $part" if -l $part && (lstat _)[4];    # those of the system are root's
    }
    my @stat = lstat $path or return 'is gone';
    return 'is no file' unless -f _;
    return 'has another mode' if ($stat[2] & oct 7777) != $mode;
    open(my $file, '<', $path) or return 'cannot be read';
    binmode $file;
    return (<$file> // '') eq $content ? '' : 'has other content';
}
