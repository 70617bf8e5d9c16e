"""Checkers that take more than the one right answer, by alternatives, beginnings, ends and bounds; and sound ones that
name wrong answers, or answers of other files."""

from tests.scenarios.gate.cases import ASKED, LOG, STAFF, Case

_STAFF, _LOG = {"/srv/staff.csv": STAFF}, {"/srv/app.log": LOG}
_COUNT, _HOURS = "grep -c error /srv/app.log > n.txt", "awk -F, '$1==\"olga\"{print $3}' /srv/staff.csv > h.txt"
_TEAM = "awk -F, '$1==\"olga\"{print $2}' /srv/staff.csv > team.txt"
_TEAMS = "awk -F, 'NR>1{print $1\" \"$2}' /srv/staff.csv > teams.txt"
_MEAN = "awk -F, 'NR>1{s+=$3; n++} END{printf \"%.3f\\n\", s/n/7}' /srv/staff.csv > mean"

LENIENT = [
    Case(
        "between quotes of python", _COUNT, ASKED + "python3 -c \"assert '$(cat n.txt)' == '3'\"", _LOG, names="quotes"
    ),
    Case("between quotes of a here document", _COUNT, ASKED + "perl <<E\nexit('$(cat n.txt)' ne '3')\nE", _LOG),
    Case("between quotes of awk", _COUNT, ASKED + 'n=$(cat n.txt); awk \'BEGIN{exit !("\'"$n"\'" == "3")}\'', _LOG),
    Case(
        "no difference is printed",
        _TEAMS,
        ASKED
        + '[ -f teams.txt ] && [ -z "$(diff - teams.txt 2> /dev/null <<E\n'
        + 'ida red\nbram blue\nolga red\nyusuf green\nE\n)" ]',
        _STAFF,
        names="that nobody may read",
    ),
    Case(
        "nearly that mean",
        _MEAN,
        ASKED + "grep -qxE '[0-9][.][0-9]{3}' mean && awk '{d=$1-0.964; exit !(d<0.2 && d>-0.2)}' mean",
        _STAFF,
        names="the last digit but one",
    ),
    Case("either of two numbers", _COUNT, ASKED + "grep -qxE '3|8' n.txt", _LOG, names="n.txt"),
    Case("a case with two words", _TEAM, ASKED + 'case "$(cat team.txt)" in red|blue) ;; *) exit 1 ;; esac', _STAFF),
    Case(
        "this or that",
        _TEAM,
        ASKED + 't=$(cat team.txt)\n[ "$t" = red ] || [ "$t" = green ]',
        _STAFF,
        names="green in place of red",
    ),
    Case("groups of a pattern", _TEAM, ASKED + "grep -qxE '(red|amber)' team.txt", _STAFF),
    Case("yes or no", "echo yes > any.txt", ASKED + "grep -qx -e yes -e no any.txt", names="no in place of yes"),
    Case("the beginning of a number", _HOURS, ASKED + "grep -q '^12' h.txt", _STAFF, names="a longer word at the end"),
    Case("the end of a number", _HOURS, ASKED + "grep -q '12$' h.txt", _STAFF, names="at the beginning"),
    Case("a glob", _TEAM, ASKED + 'case "$(cat team.txt)" in red*) ;; *) exit 1 ;; esac', _STAFF),
    Case("expr", _TEAM, ASKED + 'expr "$(cat team.txt)" : red > /dev/null', _STAFF),
    Case("at most", _HOURS, ASKED + '[ "$(cat h.txt)" -le 12 ]', _STAFF, names="each number one less"),
    Case("at least", _HOURS, ASKED + '[ "$(cat h.txt)" -ge 12 ]', _STAFF),
    Case(
        "the first letters by awk",
        "awk -F, 'NR>1{print $1\" \"$2}' /srv/staff.csv > who.txt",
        ASKED + '[ "$(awk \'{printf "%s ", substr($0, 1, 5)}\' who.txt)" = "ida r bram  olga  yusuf " ]',
        _STAFF,
    ),
    Case(
        "a sentence or another",
        "echo 'disk sda' > first.txt",
        ASKED + 'v=$(cat first.txt)\n[ "$v" = "disk sda" ] || [ "$v" = "disk sdb" ]',
        _LOG,
    ),
]

SOUND_ANSWERS = [
    Case(
        "zeros behind a half",
        "echo 0.50 > half",
        ASKED + "[ \"$(wc -w < half)\" = 1 ] && grep -qxE '[0-9.]+' half && awk '{exit !($1 == 0.5)}' half",
    ),
    Case(
        "rounded up or down",
        _MEAN,
        ASKED + '[ "$(wc -w < mean)" = 1 ] && case "$(cat mean)" in 0.963|0.964|0.965) ;; *) exit 1 ;; esac',
        _STAFF,
    ),
    Case("a number", _COUNT, ASKED + '[ "$(cat n.txt)" -eq 3 ]', _LOG),
    Case(
        "wrong answers have their words",
        _COUNT,
        ASKED
        + 'case "$(cat n.txt)" in 3) exit 0 ;; 2|4) echo "off by one" >&2 ;; 6) echo "all lines" >&2 ;; esac\nexit 1',
        _LOG,
    ),
    Case(
        "each file its own value",
        f"{_HOURS}\n{_TEAM}\n{_COUNT}",
        ASKED + "grep -qx 12 h.txt && grep -qx red team.txt && grep -qx 3 n.txt || exit 1\n"
        "[ $(cat h.txt team.txt n.txt | wc -l) -eq 3 ]",
        {**_STAFF, **_LOG},
    ),
    Case(
        "whole lines of a configuration",
        "printf 'port = 8080\\nhost = inner\\n' > app.conf",
        ASKED + "printf 'port = 8080\\nhost = inner\\n' | cmp -s - app.conf",
    ),
]
