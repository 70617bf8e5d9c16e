#!/usr/bin/perl
# Runs a program of the scenario when it is on record: winnow-run INTERPRETER PROGRAM [ARGUMENT ...], from a first line.
use strict;
use warnings;
use Socket;

my ($interpreter, @words) = @ARGV;
my ($path,        @given) = @words;
$path = readlink('/proc/self/cwd') . "/$path" if $path !~ m{\A/};
socket(my $recorder, AF_UNIX, SOCK_STREAM, 0) or die "socket: $!\n";
if (connect $recorder, pack_sockaddr_un('/run/winnow.sock')) {
    local $SIG{PIPE} = 'IGNORE';
    my $told = pack '(N/a*)*', $path, @given;
    while (my $count = syswrite $recorder, $told) { substr $told, 0, $count, '' }
    shutdown $recorder, 1;
    sysread $recorder, my $answer, 1;
}
my ($program, $option) = split / /, $interpreter, 2;
exec {$program} $program, $option // (), @words or die "$program: $!\n";
