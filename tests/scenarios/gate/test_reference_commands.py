"""A reference solution as an agent types it."""

import pytest

from curation.scenarios.gate.reference_commands import commands_of, lost_between


@pytest.mark.parametrize(
    "command",
    [
        "todo list",
        "cat > x <<'END'\nif\nEND",
        "for i in 1 2; do\n    echo $i\ndone",
        "if a\nthen b\nfi | c",
        "case $a in\na) echo ;;\nb|c)\n    echo ;;\nesac",
        "f() {\n    a\n}",
        "a &&\nb ||\nc |\nd",
        "(a\nb)",
        "awk '{\nprint\n}' f \\\n  > g",
        'x="a\nb" y=$(cat <<E\nfoo\nE\n)',
    ],
)
def test_a_command_of_several_lines_stays_whole(command: str) -> None:
    assert commands_of(f"first\n\n{command}\nlast\n# a remark\n") == ("first", command, "last\n# a remark")


@pytest.mark.parametrize(
    ("script", "lost"),
    [
        ("n=1\necho $n", "`n` is set in `n=1`"),
        ("read -r n < f\necho ${n}", "`n` is set in"),
        ("f() { a; }\nf b", "the function `f`"),
        ("alias ll='ls -l'\nll", "the alias `ll`"),
        ("umask 077\ntouch f", "`umask 077` ends"),
        ("set -- a b\necho $1", "`set -- a b` ends"),
        ("trap 'rm f' EXIT\ntouch f", "ends with its command"),
        ("readonly n=1\necho $n", "`n` is set in `readonly n=1`"),
        ("IFS=: read -r u h < f\necho $h", "`h` is set in"),
        ("while getopts a: o; do :; done\necho $o", "`o` is set in"),
        (": ${n:=1}\necho ${#n}", "`n` is set in"),
        ("n=1\necho $((n + 1))", "`n` is set in"),
        ("export n=1\necho $n", ""),
        ("n=1; echo $n", ""),
        ("LC_ALL=C sort f\necho $LC_ALL", ""),
        ("n=1\nn=2; echo $n", ""),
    ],
)
def test_what_ends_with_its_command_is_named(script: str, lost: str) -> None:
    found = lost_between(commands_of(script))
    assert lost in found and bool(found) == bool(lost)
