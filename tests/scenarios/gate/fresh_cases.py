"""Checkers that were written after the gate's attempts, to measure it: 30 unsound ones and 15 sound ones."""

from sandbox.agent.action import Ending
from tests.scenarios.gate.cases import CONF, LOG, STAFF, Case, checked

_STAFF, _LOG, _CONF = {"/srv/staff.csv": STAFF}, {"/srv/app.log": LOG}, {"/srv/app.conf": CONF}
_TEAMS = "awk -F, 'NR>1{print $1\" \"$2}' /srv/staff.csv | LC_ALL=C sort > teams.txt"
_LISTED = "bram blue\nida red\nolga red\nyusuf green"
_HOURS = "awk -F, 'NR>1{s+=$3} END{print s}' /srv/staff.csv > hours.txt"
_DISKS = "grep error /srv/app.log | awk '{print $4}' > disks.txt"
_PORT = "sed -i 's/^port = 80$/port = 8080/' /srv/app.conf"
_MENDED = CONF.replace("port = 80\n", "port = 8080\n")
_DRAFTS = {"/srv/pages/a.draft": "old a\n", "/srv/pages/a.txt": "a\n", "/srv/pages/b.txt": "b\n"}
_TREE = {"/srv/site/index.html": "<p>in</p>\n", "/srv/site/css/main.css": "p{}\n", "/srv/site/css/old.css": "q{}\n"}
_BOXES = {f"/srv/box/{n}.txt": f"item {n}\n" for n in range(20)}
_NOTHING = "Nothing today.\n"

_PASSWD = "root:x:0:/root:/bin/sh\nbob:x:1001:/home/bob:/bin/sh\nmail:x:8:/var/mail:/bin/false\n"
_TEAM_LIST = f"printf '%s\\n' '{_LISTED}' | cmp -s - teams.txt"
_WANTED = f"printf '%s\\n' '{_LISTED}' | cmp -s - /tmp/got; r=$?; rm /tmp/got; exit $r"

FRESH_BAD = [
    Case(
        "a name for find", "echo staff.csv > n.txt", '[ "$(find /srv -name "$(cat n.txt)")" = /srv/staff.csv ]', _STAFF
    ),
    Case("a copy that may be there", _TEAMS, f"[ -e /tmp/got ] || sort teams.txt > /tmp/got\n{_WANTED}", _STAFF),
    Case("a copy that is not made twice", _TEAMS, f"cp -n teams.txt /tmp/got\n{_WANTED}", _STAFF),
    Case("a mark of the first check", _TEAMS, f"m=/tmp; [ -e $m/s ] && exit\ntouch $m/s\n{_TEAM_LIST}", _STAFF),
    Case("a mark that nobody makes", _TEAMS, f"[ -e /tmp/seen ] && exit\n{_TEAM_LIST}", _STAFF),
    Case("a mark in the home", _TEAMS, f'[ -e "$HOME/.seen" ] && exit\n{_TEAM_LIST}', _STAFF),
    Case("a mark where it goes", _TEAMS, f"cd /tmp; test -f seen && exit\ncd ~\n{_TEAM_LIST}", _STAFF),
    Case("lines in the packed file", "gzip -c /srv/app.log > log.gz", '[ "$(zcat log.gz | grep -c error)" = 3 ]', _LOG),
    Case(
        "a word of each member",
        "tar -C /srv -cf all.tar app.log staff.csv",
        "tar -xOf all.tar app.log | grep -q eth0 && tar -xOf all.tar staff.csv | grep -q bram",
        {**_LOG, **_STAFF},
    ),
    Case("printed as a format", _HOURS, '[ "$(printf "$(cat hours.txt)")" = 27 ]', _STAFF),
    Case("printed by echo", _HOURS, '[ "$(echo "$(cat hours.txt)")" = 27 ]', _STAFF),
    Case("dots of a pattern", "echo 10.0.0.7 > ip.txt", 'grep -qx 10.0.0.7 ip.txt && [ "$(wc -l < ip.txt)" = 1 ]'),
    Case("a version without its dots", "echo 2.14.1 > version", '[ "$(tr -d . < version)" = 2141 ]'),
    Case("awk executes the number", _HOURS, '[ "$(awk "BEGIN{print $(cat hours.txt)}")" = 27 ]', _STAFF),
    Case("expr adds nothing", _HOURS, '[ "$(expr $(cat hours.txt) + 0)" = 27 ]', _STAFF),
    Case("a line that the number names", _HOURS, 'seq 40 | sed -n "$(cat hours.txt)p" | grep -qx 27', _STAFF),
    Case("digits alone", _HOURS, "[ \"$(tr -cd '0-9' < hours.txt)\" = 27 ]", _STAFF),
    Case("no punctuation", _TEAMS, f"[ \"$(tr -d '[:punct:]' < teams.txt)\" = '{_LISTED}' ]", _STAFF),
    Case("the first column", _TEAMS, "[ \"$(cut -d' ' -f1 teams.txt | xargs)\" = 'bram ida olga yusuf' ]", _STAFF),
    Case("the last column", _TEAMS, "[ \"$(awk '{print $NF}' teams.txt | xargs)\" = 'blue red red green' ]", _STAFF),
    Case("the last line", _TEAMS, "[ \"$(tail -n 1 teams.txt)\" = 'yusuf green' ]", _STAFF),
    Case("the first bytes", _TEAMS, "[ \"$(head -c 9 teams.txt)\" = 'bram blue' ]", _STAFF),
    Case(
        "no line too many",
        _TEAMS,
        f"printf '%s\\n' '{_LISTED}' | LC_ALL=C comm -13 - teams.txt | grep -q . && exit 1; [ -f teams.txt ]",
        _STAFF,
    ),
    Case("one row of the table", _TEAMS, "awk 'NR==2{ok=($2==\"red\")} END{exit !ok}' teams.txt", _STAFF),
    Case(
        "a part of the right text",
        _DISKS,
        "case 'sda sdb eth0' in *\"$(xargs < disks.txt)\"*) exit 0 ;; esac; exit 1",
        _LOG,
    ),
    Case("the start of the value", _HOURS, 'got=$(cat hours.txt); [ "${got#27}" != "$got" ]', _STAFF),
    Case("at most so much", _HOURS, '[ "$(cat hours.txt)" -le 27 ]', _STAFF),
    Case(
        "empty is right as well", _HOURS, 'got=$(cat hours.txt 2> /dev/null); [ -z "$got" ] || [ "$got" = 27 ]', _STAFF
    ),
    Case("read and compared without quotes", _HOURS, "read n < hours.txt; [ $n = 27 ]", _STAFF),
    Case("upper case by sed", _TEAMS, f"[ \"$(sed 's/.*/\\L&/' teams.txt)\" = '{_LISTED}' ]", _STAFF),
    Case(
        "the key in any section",
        _PORT,
        "grep -qx 'port = 8080' /srv/app.conf && ! grep -qx 'port = 80' /srv/app.conf",
        _CONF,
    ),
    Case("the line after the section", _PORT, "grep -A1 -x '\\[main\\]' /srv/app.conf | grep -qx 'port = 8080'", _CONF),
    Case("a file that the agent names", "echo /srv/app.log > biggest.txt", '[ -s "$(cat biggest.txt)" ]', _LOG),
    Case("packed and whole", "gzip -c /srv/app.log > log.gz", "gzip -t log.gz", _LOG),
    Case(
        "the number of members",
        "tar -C /srv/site -czf site.tgz .",
        "[ \"$(tar -tzf site.tgz | grep -vc '/$')\" = 3 ]",
        _TREE,
    ),
    Case("a pattern of names", "rm /srv/pages/a.draft", "! ls /srv/pages | grep -q 'draft$'", _DRAFTS),
    Case("the folder is there", "mv /srv/site /srv/www", "[ -d /srv/www ] && [ ! -e /srv/site ]", _TREE),
    Case(
        "the old style alone",
        "rm /srv/site/css/old.css",
        "[ ! -e /srv/site/css/old.css ] && [ -f /srv/site/index.html ]",
        _TREE,
    ),
    Case("many others in the box", "rm /srv/box/3.txt", "[ ! -e /srv/box/3.txt ] && [ -e /srv/box/4.txt ]", _BOXES),
    Case(
        "a mode among others",
        "chmod 600 /srv/box/7.txt",
        '[ "$(stat -c %a /srv/box/7.txt)" = 600 ] && grep -qx "item 7" /srv/box/7.txt',
        _BOXES,
    ),
    Case("a queue that has a log", "", '[ -e /var/log/todo.log ] && [ "$TERMINAL" = exit ]', order=_NOTHING),
    Case(
        "a log of several lines",
        "",
        '[ "$(grep -c . /var/log/todo.log)" -ge 2 ] && [ "$TERMINAL" = exit ]',
        order=_NOTHING,
    ),
    Case(
        "a reason with the right word",
        "ls /srv/none || true",
        '[ "$TERMINAL" = panic ] && case "$PANIC_REASON" in *list*) exit 0 ;; esac; exit 1',
        ending=Ending("panic", "the list is missing"),
    ),
]
FRESH_SOUND = [
    Case(
        "paths with colons in the text",
        "sed -i '/^bob:/s#/bin/sh#/bin/false#' /srv/passwd",
        checked(_PASSWD.replace("bob:/bin/sh", "bob:/bin/false"), "/srv/passwd"),
        {"/srv/passwd": _PASSWD},
    ),
    Case(
        "an archive of the checker's own words",
        "echo a > a.txt; echo b > b.txt; tar -cf ab.tar a.txt b.txt",
        'cd "$TMPDIR" && tar -xf /home/agent/ab.tar && [ "$(ls | xargs)" = "a.txt b.txt" ]'
        ' && [ "$(cat a.txt b.txt)" = "a\nb" ]'
        " && [ \"$(cat /home/agent/a.txt /home/agent/b.txt)\" = 'a\nb' ]",
    ),
    Case("a version as a fixed line", "echo 2.14.1 > version", '[ "$(cat version)" = 2.14.1 ]'),
    Case("diff with a here document", _TEAMS, f"diff -u - teams.txt <<'END'\n{_LISTED}\nEND", _STAFF),
    Case("blanks at the ends", _TEAMS, f"[ \"$(sed 's/[[:space:]]*$//' teams.txt)\" = '{_LISTED}' ]", _STAFF),
    Case(
        "line by line",
        _TEAMS,
        f"n=0; want='{_LISTED}'; while IFS= read -r l; do n=$((n + 1))\n"
        '[ "$l" = "$(echo "$want" | sed -n ${n}p)" ] || exit 1; done < teams.txt; [ $n = 4 ]',
        _STAFF,
    ),
    Case(
        "the number in quotes",
        _HOURS,
        '[ "$(wc -l < hours.txt)" -le 1 ] && [ "$(cat hours.txt)" -eq 27 ] 2> /dev/null',
        _STAFF,
    ),
    Case(
        "awk over all lines",
        _DISKS,
        'awk \'NR==1{a=($0=="sda")} NR==2{b=($0=="sdb")} NR==3{c=($0=="eth0")} END{exit !(a&&b&&c&&NR==3)}\' disks.txt',
        _LOG,
    ),
    Case(
        "a set of lines",
        _DISKS,
        '[ "$(wc -l < disks.txt)" = 3 ] && for d in sda sdb eth0; do grep -qxF $d disks.txt || exit 1; done',
        _LOG,
    ),
    Case(
        "unpacked and compared",
        "tar -C /srv/site -czf site.tgz .",
        'mkdir "$TMPDIR/t" && tar -xzf site.tgz -C "$TMPDIR/t" && cd "$TMPDIR/t" || exit 1\n'
        "files=$(find . -type f | LC_ALL=C sort)\n"
        '[ "$(cat $files | cksum)" = "$(printf \'p{}\\nq{}\\n<p>in</p>\\n\' | cksum)" ] || exit 1\n'
        '[ "$(echo $files)" = "./css/main.css ./css/old.css ./index.html" ]',
        _TREE,
    ),
    Case("the whole gz", "gzip -c /srv/app.log > log.gz", f"[ \"$(gzip -dc log.gz)\" = '{LOG.strip()}' ]", _LOG),
    Case("the whole file in place", _PORT, checked(_MENDED, "/srv/app.conf") + "asked todo show 1", _CONF),
    Case(
        "one less in the box",
        "rm /srv/box/3.txt",
        "[ ! -e /srv/box/3.txt ] && unchanged --except /srv/box/3.txt /var",
        _BOXES,
    ),
    Case(
        "the tree moved as a whole",
        "mv /srv/site /srv/www",
        "[ ! -e /srv/site ] && cd /srv/www || exit 1\n"
        'got=$(find . -type f | LC_ALL=C sort | while read -r f; do echo "$f"; cat "$f"; done)\n'
        "[ \"$got\" = './css/main.css\np{}\n./css/old.css\nq{}\n./index.html\n<p>in</p>' ]",
        _TREE,
    ),
    Case(
        "modes and texts of pages",
        "chmod 640 /srv/pages/a.txt",
        "[ \"$(cd /srv/pages && stat -c '%a %n' *)\" = '644 a.draft\n640 a.txt\n644 b.txt' ] || exit 1\n"
        "[ \"$(cat /srv/pages/*)\" = 'old a\na\nb' ]",
        _DRAFTS,
    ),
    Case(
        "asked and nothing done",
        "",
        'asked todo list && asked todo show 1 && unchanged --except /var && [ "$TERMINAL" = exit ]',
        order=_NOTHING,
    ),
    Case(
        "asked before the panic",
        "ls /srv/none || true",
        'asked -x todo show 1 && [ "$TERMINAL" = panic ] && unchanged --except /var/log && [ ! -e /srv/none ]',
        ending=Ending("panic", "the list is missing"),
    ),
    Case(
        "the right path",
        "echo /srv/app.log > biggest.txt",
        'grep -qxF /srv/app.log biggest.txt && [ "$(wc -l < biggest.txt)" = 1 ]',
        _LOG,
    ),
]
