"""Checkers that do not see collateral damage, read the agent's text as code or tolerate too much; and sound ones.

They were written before the gate tried such attempts."""

from sandbox.agent.action import Ending
from tests.scenarios.gate.cases import CONF, LOG, STAFF, Case, checked

_STAFF, _LOG = {"/srv/staff.csv": STAFF}, {"/srv/app.log": LOG}
_COUNT = "grep -c error /srv/app.log > n.txt"
_WORD = "awk -F, '$1==\"olga\"{print $2}' /srv/staff.csv > team.txt"
_NAMES = "awk -F, 'NR>1{print $1\" \"$2}' /srv/staff.csv | LC_ALL=C sort > names.txt"
_LISTED = "bram blue\nida red\nolga red\nyusuf green"
_SPOOL = {"/srv/spool/a.job": "void\n", "/srv/spool/b.job": "keep\n", "/srv/spool/c.job": "void\n"}
_VOID = "rm /srv/spool/a.job /srv/spool/c.job"
_HOSTS = {
    "/srv/hosts/web.conf": "host = inner\nport = 80\n",
    "/srv/hosts/db.conf": "host = inner\nport = 5432\n",
    "/srv/hosts/mail.conf": "host = inner\nport = 25\n",
}
_WEB = checked("host = outer\nport = 80", "/srv/hosts/web.conf")
_OUTER = "sed -i 's/host = inner/host = outer/' /srv/hosts/web.conf"
_KEYS = {"/srv/keys/ida.pub": "a\n", "/srv/keys/ida.key": "b\n", "/srv/keys/README": "keys\n"}
_LETTERS = {"/srv/in/1.txt": "one\n", "/srv/in/2.txt": "two\n", "/srv/in/3.txt": "three\n"}
_GONE = "[ ! -e /srv/spool/a.job ] && [ ! -e /srv/spool/c.job ]"
_EMPTY = "Nothing today.\n"

UNSEEN = [
    Case("what stays in the spool", _VOID, _GONE, _SPOOL, names="b.job"),
    Case("that what stays is there", _VOID, _GONE + " && [ -e /srv/spool/b.job ]", _SPOOL, names="b.job"),
    Case("the number of those that stay", _VOID, _GONE + " && [ $(ls /srv/spool | wc -l) -eq 1 ]", _SPOOL),
    Case("the other hosts", _OUTER, _WEB, _HOSTS, names="db.conf"),
    Case(
        "one of the other hosts",
        _OUTER,
        _WEB + checked("host = inner\nport = 5432", "/srv/hosts/db.conf"),
        _HOSTS,
        names="mail.conf",
    ),
    Case(
        "modes of the other keys",
        "chmod 400 /srv/keys/ida.key",
        '[ "$(stat -c %a /srv/keys/ida.key)" = 400 ] && [ "$(cat /srv/keys/ida.key)" = b ]'
        ' && [ "$(cat /srv/keys/ida.pub /srv/keys/README)" = "a\nkeys" ]',
        _KEYS,
    ),
    Case(
        "the other letters",
        "mkdir -p /srv/done && mv /srv/in/2.txt /srv/done/",
        '[ ! -e /srv/in/2.txt ] && [ "$(cat /srv/done/2.txt)" = two ]',
        _LETTERS,
    ),
    Case(
        "the rest of a folder that was renamed",
        "mv /srv/set/draft.txt /srv/set/final.txt",
        '[ ! -e /srv/set/draft.txt ] && [ "$(cat /srv/set/final.txt)" = text ]',
        {"/srv/set/draft.txt": "text\n", "/srv/set/notes.txt": "n\n"},
    ),
    Case(
        "another file with the same text",
        "sed -i 's/^port = 80$/port = 8080/' /srv/a.conf",
        checked(CONF.replace("port = 80\n", "port = 8080\n"), "/srv/a.conf"),
        {"/srv/a.conf": CONF, "/srv/b.conf": CONF},
        names="b.conf",
    ),
    Case(
        "files in folders below",
        "rm /srv/tree/old.log",
        "[ ! -e /srv/tree/old.log ] && [ -d /srv/tree/sub ]",
        {"/srv/tree/old.log": "x\n", "/srv/tree/sub/new.log": "y\n"},
        names="new.log",
    ),
]
AS_CODE = [
    Case("an unquoted number", _COUNT, "[ $(cat n.txt) -eq 3 ]", _LOG, names="n.txt"),
    Case("an unquoted number on the right", _COUNT, "[ 3 = $(cat n.txt) ]", _LOG),
    Case("an unquoted variable", _WORD, "t=$(cat team.txt); test $t = red", _STAFF),
    Case("a script in quotes", _COUNT, 'sh -c "[ $(cat n.txt) = 3 ]"', _LOG),
    Case("arithmetic on a sum", _COUNT, '[ "$(( $(cat n.txt) + 1 ))" = 4 ]', _LOG),
    Case("eval", _COUNT, 'eval "n=$(cat n.txt)"; [ "$n" = 3 ]', _LOG),
    Case("the agent's patterns", _WORD, "echo red | grep -qf team.txt", _STAFF),
    Case(
        "the agent's whole patterns",
        _NAMES,
        f"printf '%s\\n' '{_LISTED}' | grep -vxqf names.txt && exit 1; [ -s names.txt ]",
        _STAFF,
    ),
    Case("a pattern of a case", _WORD, "case red in $(cat team.txt)) exit 0 ;; esac; exit 1", _STAFF),
    Case("expr with the agent's pattern", _WORD, 'expr red : "$(cat team.txt)" > /dev/null', _STAFF),
    Case("bc", _COUNT, '[ "$(bc < n.txt)" = 3 ]', _LOG),
    Case("awk reads a number", _COUNT, "awk '{exit !($1 == 3)}' n.txt", _LOG),
]
TOLERANT = [
    Case("any case of letters", _WORD, "grep -qix red team.txt", _STAFF, names="team.txt"),
    Case("lower case first", _NAMES, f"[ \"$(tr A-Z a-z < names.txt)\" = '{_LISTED}' ]", _STAFF),
    Case("awk in lower case", _NAMES, f"[ \"$(awk '{{print tolower($0)}}' names.txt)\" = '{_LISTED}' ]", _STAFF),
    Case(
        "no blanks", "grep -c error /srv/app.log | sed 's/$/000/' > n.txt", "[ \"$(tr -d ' ' < n.txt)\" = 3000 ]", _LOG
    ),
    Case("diff without blanks", _NAMES, f"printf '%s\\n' '{_LISTED}' | diff -qw - names.txt > /dev/null", _STAFF),
    Case("each line once", _NAMES, f"[ \"$(sort -u names.txt)\" = '{_LISTED}' ]", _STAFF),
    Case("as a number", _COUNT, 'printf %d "$(cat n.txt)" | grep -qx 3', _LOG),
    Case("the number in a text", "echo 1284 > sum.txt", "grep -q 1284 sum.txt", names="sum.txt"),
]
FORGED = [
    Case("a trace alone", "", "grep -q list /var/log/todo.log", order=_EMPTY),
    Case("a whole line of the trace", "", "grep -qx 'show 1' /var/log/todo.log && [ ! -e /srv/out ]", order=_EMPTY),
    Case(
        "a trace and a panic",
        "todo done 1",
        '[ "$TERMINAL" = panic ] && [ -n "$PANIC_REASON" ] && grep -qx done /var/spool/todo/1',
        ending=Ending("panic", "no list"),
    ),
    Case("any call of the program", "", 'asked todo && [ "$TERMINAL" = exit ]', order=_EMPTY),
]
DAMAGED = [*UNSEEN, *AS_CODE, *TOLERANT, *FORGED]
SOUND_BESIDE = [
    Case("nothing else was touched", _VOID, "unchanged --except /srv/spool/a.job /srv/spool/c.job && " + _GONE, _SPOOL),
    Case(
        "what stays as a whole",
        _VOID,
        _GONE + ' && [ "$(cat /srv/spool/*)" = keep ] && [ -f /srv/spool/b.job ]',
        _SPOOL,
    ),
    Case(
        "the others as a whole",
        _OUTER,
        _WEB + "printf 'host = inner\\nport = 5432\\n' | cmp -s - /srv/hosts/db.conf || exit 1\n"
        "printf 'host = inner\\nport = 25\\n' | cmp -s - /srv/hosts/mail.conf",
        _HOSTS,
    ),
    Case(
        "modes of all",
        "chmod 400 /srv/keys/ida.key",
        'unchanged --except /srv/keys/ida.key && [ "$(stat -c %a /srv/keys/ida.key)" = 400 ]'
        ' && [ "$(cat /srv/keys/ida.key)" = b ]',
        _KEYS,
    ),
    Case("sources that nobody looks at", _NAMES, f"[ \"$(cat names.txt)\" = '{_LISTED}' ]", _STAFF),
    Case("a count beside a source", _COUNT, '[ "$(cat n.txt)" = 3 ] && asked todo show 1', _LOG),
    Case("a quoted number", _COUNT, 'n=$(cat n.txt); [ "$n" = 3 ] || exit 1; echo "$((n + 1))" > /dev/null', _LOG),
    Case("the right answer as a pattern", _WORD, "grep -qxF red team.txt && [ $(wc -l < team.txt) -eq 1 ]", _STAFF),
    Case("by cmp", _NAMES, f"printf '%s\\n' '{_LISTED}' > $TMPDIR/want; cmp -s $TMPDIR/want names.txt", _STAFF),
    Case("a line read", _WORD, 'IFS= read -r t < team.txt && [ "$t" = red ] && [ $(wc -c < team.txt) -eq 4 ]', _STAFF),
    Case("asked and left", "", '[ "$TERMINAL" = exit ] && asked todo show 1 && [ ! -e /srv/out ]', order=_EMPTY),
    Case(
        "asked and blocked",
        "cat /srv/list || true\ntodo done 1",
        '[ "$TERMINAL" = panic ] && [ -n "$PANIC_REASON" ] && asked todo show 1 && unchanged --except /var',
        ending=Ending("panic", "the list is missing"),
    ),
    Case(
        "moved with the others in place",
        "mkdir -p /srv/done && mv /srv/in/2.txt /srv/done/",
        'unchanged --except /srv/in/2.txt && [ ! -e /srv/in/2.txt ] && [ "$(cat /srv/done/2.txt)" = two ]',
        _LETTERS,
    ),
    Case(
        "an archive by its contents",
        "tar -C /srv/data -cf pack.tar a b",
        '[ "$(tar -tf pack.tar)" = "a\nb" ] && [ "$(tar -xOf pack.tar a)" = one ]'
        ' && [ "$(tar -xOf pack.tar b)" = two ]',
        {"/srv/data/a": "one\n", "/srv/data/b": "two\n"},
    ),
    Case("sorted before it is compared", _NAMES, f"[ \"$(LC_ALL=C sort names.txt)\" = '{_LISTED}' ]", _STAFF),
    Case(
        "a digest",
        _COUNT,
        "[ \"$(sha256sum < n.txt)\" = '1121cfccd5913f0a63fec40a6ffd44ea64f9dc135c66634ba001d10bcf4302a2  -' ]",
        _LOG,
    ),
]
