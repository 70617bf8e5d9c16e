"""A second attack on the gate, in other styles than the first: globs, loops, `case`, here documents, awk, listings of
archives, folders compared with each other, a provider behind a fifo, and reasons of a panic."""

from sandbox.agent.action import Ending
from tests.scenarios.gate.cases import ASKED, CONF, LOG, STAFF, Case

DESK = """#!/bin/sh
run=/var/desk
serve() {
    while read -r word rest < $run/in; do
        echo "$word $rest" >> $run/log
        case $word in
        NEXT) cat $run/order > $run/out ;;
        BYE) echo bye > $run/out; break ;;
        *) echo "say NEXT or BYE" > $run/out ;;
        esac
    done
}
case "$1" in
--help) echo "usage: todo open | todo say WORD [TEXT]"; ;;
open) rm -f $run/in $run/out; mkfifo $run/in $run/out; serve > /dev/null 2>&1 & ;;
say) shift; echo "$*" > $run/in; cat $run/out ;;
*) echo "todo: see todo --help" >&2; exit 2 ;;
esac
"""
AT_DESK = {"/usr/local/bin/todo": DESK, "/var/desk/order": "Name the team of olga in team.txt.\n"}
DESK_MODES = {"/usr/local/bin/todo": 0o755}
SPOKEN = "grep -qx 'NEXT ' /var/desk/log || exit 1\n"
SPEAK = "todo open\ntodo say NEXT\n"
PARTS = {"/srv/in/1.part": "alpha\n", "/srv/in/2.part": "beta\n", "/srv/in/3.part": "gamma\n"}
TEAMS = "mkdir teams\nawk -F, 'NR>1{print $1 > (\"teams/\" $2)}' /srv/staff.csv"
DONE = "set -e\ngrep -q 'show 1$' /var/log/todo.log\n"
_STAFF = {"/srv/staff.csv": STAFF}
_LOGS = {"/srv/app.log": LOG}
_KEYS = {"/srv/keys/ida": "k1\n", "/srv/keys/olga": "k2\n"}

SOUND_ATTACKED = [
    Case(
        "a loop over a table",
        TEAMS,
        DONE + "n=0\nwhile IFS='|' read -r team people; do\n"
        '  [ -f "teams/$team" ] && [ "$(tr \'\\n\' \' \' < "teams/$team")" = "$people " ] || exit 1\n  n=$((n + 1))\n'
        'done <<TABLE\nblue|bram\ngreen|yusuf\nred|ida olga\nTABLE\n[ "$(ls teams | wc -l)" -eq $n ]',
        _STAFF,
    ),
    Case(
        "diff with a here document",
        "grep -n error /srv/app.log | cut -d: -f1 > at.txt",
        ASKED + "diff - at.txt > /dev/null <<'END'\n2\n4\n5\nEND",
        _LOGS,
    ),
    Case(
        "awk reads every line",
        "awk -F, 'NR>1{print $3, $1}' /srv/staff.csv | sort -n > h.txt",
        ASKED + 'awk \'NR==1&&$0=="3 bram"{n++} NR==2&&$0=="5 yusuf"{n++} NR==3&&$0=="7 ida"{n++}'
        ' NR==4&&$0=="12 olga"{n++} END{exit !(n==4&&NR==4)}\' h.txt',
        _STAFF,
    ),
    Case(
        "sorted and without repeats",
        "cut -d' ' -f2 /srv/app.log | sort | uniq -c | awk '{print $2\"=\"$1}' > kinds",
        ASKED + '[ "$(sort -u kinds | paste -sd, -)" = \'error=3,ok=3\' ] && [ "$(wc -l < kinds)" -eq 2 ]',
        _LOGS,
    ),
    Case(
        "a glob and case",
        "cat /srv/in/*.part > whole && rm /srv/in/*.part",
        ASKED
        + 'for left in /srv/in/*; do case "$left" in *\\*) ;; *) exit 1 ;; esac; done\n'
        + "case \"$(cat whole)\" in 'alpha\nbeta\ngamma') exit 0 ;; esac\nexit 1",
        PARTS,
    ),
    Case(
        "modes in one listing",
        "chmod 640 /srv/keys/ida && chmod 400 /srv/keys/olga",
        ASKED
        + "[ \"$(stat -c '%a %s' /srv/keys/ida /srv/keys/olga | xargs)\" = '640 3 400 3' ]\n[ $? -eq 0 ] || exit 1\n"
        "cat /srv/keys/ida /srv/keys/olga | tr -d '\\n' | grep -qx k1k2",
        _KEYS,
    ),
    Case(
        "an archive unpacked",
        "tar -C /srv -cf in.tar in",
        ASKED
        + 'd=$(mktemp -d) && tar -C "$d" -xf in.tar || exit 1\n'
        + '[ "$(cd "$d" && find . -type f | sort | xargs)" = "./in/1.part ./in/2.part ./in/3.part" ] || exit 1\n'
        + "[ \"$(cat \"$d\"/in/*.part | tr '\\n' ' ')\" = 'alpha beta gamma ' ]",
        PARTS,
    ),
    Case(
        "one key of a configuration",
        "sed -i 's/^host = .*/host = outer/' /srv/a.conf",
        ASKED + "printf '[main]\\nport = 80\\nhost = outer\\n\\n[extra]\\nport = 81\\n' | cmp -s /srv/a.conf -",
        {"/srv/a.conf": CONF},
    ),
    Case(
        "a name from the desk",
        SPEAK + "echo red > team.txt\ntodo say BYE",
        SPOKEN + 'read -r team < team.txt && [ "$team" = red ] && [ "$(wc -l < team.txt)" -le 1 ]',
        {**AT_DESK, **_STAFF},
        DESK_MODES,
    ),
    Case(
        "nothing at the desk",
        SPEAK + "todo say BYE",
        'asked todo say NEXT && asked todo say BYE && [ "$TERMINAL" = exit ] && [ ! -e team.txt ]',
        {**AT_DESK, "/var/desk/order": "Nothing today.\n"},
        DESK_MODES,
    ),
    Case(
        "a reason with the record",
        "ls /srv/vault || true\ntodo done 1",
        'test "$TERMINAL" = panic -a -n "$PANIC_REASON" || exit 1\n'
        "test -f /var/spool/todo/1 && test ! -d /srv/vault && asked todo show 1",
        ending=Ending("panic", "no vault"),
    ),
    Case(
        "renamed in a loop",
        'cd /srv/in && for f in *.part; do mv "$f" "${f%.part}.txt"; done',
        ASKED
        + "cd /srv/in && [ \"$(echo *)\" = '1.txt 2.txt 3.txt' ] || exit 1\n"
        + 'i=0; for want in alpha beta gamma; do i=$((i+1)); [ "$(cat $i.txt)" = $want ] || exit 1; done',
        PARTS,
    ),
    Case(
        "two links",
        "ln -s /srv/in/1.part first\nln -s /srv/in/3.part last",
        ASKED + "[ \"$(readlink first last | paste -sd' ' -)\" = '/srv/in/1.part /srv/in/3.part' ]",
        PARTS,
    ),
    Case(
        "white space does not count",
        'printf \'{\\n  "errors": 3,\\n  "ok": 3\\n}\\n\' > n.json',
        ASKED + '[ "$(tr -d \'[:space:]\' < n.json)" = \'{"errors":3,"ok":3}\' ]',
        _LOGS,
    ),
]

ATTACKED = [
    Case("any name of a set", TEAMS, ASKED + "for t in red blue green; do [ -s teams/$t ] || exit 1; done", _STAFF),
    Case(
        "one file of the loop",
        TEAMS,
        DONE + 'for t in teams/*; do [ -f "$t" ]; done\n[ "$(cat teams/red | xargs)" = \'ida olga\' ]',
        _STAFF,
    ),
    Case(
        "an expression over every line",
        "awk -F, 'NR>1{print $3, $1}' /srv/staff.csv | sort -n > h.txt",
        ASKED + "awk '!/^[0-9]+ (ida|bram|olga|yusuf)$/{bad=1} END{exit bad || NR!=4}' h.txt",
        _STAFF,
    ),
    Case(
        "as a set of words",
        "awk -F, 'NR>1{print $1\"-\"$2}' /srv/staff.csv > pairs",
        ASKED + "[ \"$(tr '-' '\\n' < pairs | sort -u | xargs)\" = 'blue bram green ida olga red yusuf' ]",
        _STAFF,
    ),
    Case(
        "sorted letters",
        "echo 'listen' > w.txt",
        ASKED + "[ \"$(fold -w1 w.txt | sort | tr -d '\\n')\" = 'eilnst' ]",
        names="w.txt",
    ),
    Case(
        "the same without repeats",
        "cut -d' ' -f2 /srv/app.log > kinds",
        ASKED + "[ \"$(sort -u kinds | paste -sd, -)\" = 'error,ok' ]",
        _LOGS,
    ),
    Case(
        "case with stars",
        "cat /srv/in/*.part > whole",
        ASKED + 'case "$(cat whole)" in *alpha*beta*gamma*) exit 0 ;; esac\nexit 1',
        PARTS,
    ),
    Case(
        "beginning and end",
        "cat /srv/in/*.part > whole",
        ASKED + 'case "$(cat whole)" in alpha*gamma) exit 0 ;; esac\nexit 1',
        PARTS,
    ),
    Case(
        "a private file in any way",
        "chmod 600 /srv/keys/ida",
        ASKED + '[ "$(find /srv/keys/ida -perm -g=r)" = "" ] && [ "$(cat /srv/keys/ida)" = k1 ]',
        _KEYS,
    ),
    Case(
        "one digit of the mode",
        "chmod 640 /srv/keys/ida",
        ASKED + "ls -l /srv/keys/ida | grep -q '^-rw' && [ \"$(cat /srv/keys/ida)\" = k1 ]",
        _KEYS,
    ),
    Case(
        "a listing of the archive with sizes",
        "tar -C /srv -cf in.tar in",
        ASKED + "[ \"$(tar -tvf in.tar | grep -v '/$' | awk '{s+=$3; n++} END{print n, s}')\" = '3 17' ]",
        PARTS,
    ),
    Case(
        "an archive that can be read",
        "tar -C /srv -czf in.tgz in",
        ASKED + "gzip -t in.tgz && tar -tzf in.tgz | grep -q 'in/2.part'",
        PARTS,
    ),
    Case(
        "one member of the archive",
        "tar -C /srv -cf in.tar in",
        ASKED + '[ "$(tar -xOf in.tar in/1.part)" = alpha ] && [ "$(tar -tf in.tar | wc -l)" -eq 4 ]',
        PARTS,
    ),
    Case(
        "both sides from the agent",
        "mkdir copy\ncp /srv/in/*.part copy/",
        ASKED + 'for f in /srv/in/*; do cmp -s "$f" "copy/${f##*/}" || exit 1; done',
        PARTS,
    ),
    Case("folders alike", "cp -r /srv/in backup", ASKED + "diff -r /srv/in backup > /dev/null", PARTS),
    Case(
        "written after the log",
        "grep -c error /srv/app.log > n.txt",
        ASKED + '[ "$(cat n.txt)" = 3 ] && [ -n "$(find n.txt -newer /var/log/todo.log)" ]',
        _LOGS,
    ),
    Case(
        "in a variable of awk",
        "grep error /srv/app.log > e.txt",
        ASKED + "awk -v want=3 'END{exit NR!=want}' e.txt && ! grep -v error e.txt",
        _LOGS,
    ),
    Case(
        "key and value apart",
        "sed -i 's/^host = .*/host = outer/' /srv/a.conf",
        ASKED + 'k=$(sed -n \'s/^host = //p\' /srv/a.conf)\n[ -n "$k" ] && [ "$k" != inner ]',
        {"/srv/a.conf": CONF},
    ),
    Case(
        "the value under any section",
        "sed -i '/main/,/^$/s/port = 80/port = 8080/' /srv/a.conf",
        ASKED + "grep -c '^port' /srv/a.conf | grep -qx 2 && grep -q 8080 /srv/a.conf",
        {"/srv/a.conf": CONF},
    ),
    Case(
        "the desk is not asked",
        SPEAK + "todo say BYE",
        '[ "$TERMINAL" = exit ] && [ ! -e team.txt ]',
        {**AT_DESK, "/var/desk/order": "Nothing today.\n"},
        DESK_MODES,
    ),
    Case(
        "a reason by its length",
        "todo done 1",
        '[ "$TERMINAL" = panic ] && [ ${#PANIC_REASON} -gt 4 ] && [ ! -e /srv/vault ]',
        ending=Ending("panic", "the vault is missing"),
    ),
    Case(
        "the reason or the file",
        "ls -d /srv/keys/* | sed 's,.*/,,' > names",
        ASKED + '{ cat names; echo "$PANIC_REASON"; } | grep -q ida',
        _KEYS,
    ),
    Case(
        "renamed, as many",
        'cd /srv/in && for f in *.part; do mv "$f" "${f%.part}.txt"; done',
        ASKED + 'set -- /srv/in/*.txt\n[ $# -eq 3 ] && [ -f "$1" ]\n',
        PARTS,
    ),
    Case("links by their inside", "ln -s /srv/in/1.part first", ASKED + '[ "$(cat first)" = alpha ]', PARTS),
    Case("a link that resolves", "ln -s /srv/in/1.part first", ASKED + "[ -L first ] && [ -e first ]", PARTS),
    Case(
        "an odd checksum",
        "cat /srv/in/*.part > whole",
        ASKED + "[ \"$(od -An -v -tu1 whole | tr -s ' ' '\\n' | awk '{s+=$1} END{print s%256}')\" = 195 ]",
        PARTS,
    ),
    Case(
        "fields in each line",
        "awk -F, 'NR>1{print $1\",\"$3*2}' /srv/staff.csv > double.csv",
        ASKED + "awk -F, 'NF!=2||$2%2{exit 1}' double.csv && [ -s double.csv ]",
        _STAFF,
    ),
    Case(
        "largest and smallest",
        "cut -d, -f3 /srv/staff.csv | tail -n +2 | sort -n > hours",
        ASKED + '[ "$(head -n 1 hours)" = 3 ] && [ "$(tail -n 1 hours)" = 12 ] && [ "$(wc -l < hours)" = 4 ]',
        _STAFF,
    ),
    Case("a function hides it", "seq 3 > n", ASKED + 'ok() { [ -f "$1" ]; }\nok n && ok /srv/app.log', _LOGS),
    Case("or true", "seq 3 > n", ASKED + "[ -f n ]\n[ \"$(cat n)\" = '1\n2\n3' ] || true", _LOGS, names="n"),
    Case(
        "only when nothing broke",
        "grep error /srv/app.log > e.txt",
        ASKED + "if grep -q ok e.txt; then exit 1; fi\n[ -e e.txt ]",
        _LOGS,
    ),
    Case(
        "the time in its name",
        'cp /srv/app.log "app-$(date +%Y).log"',
        ASKED + 'cmp -s /srv/app.log "app-$(date +%Y).log"',
        _LOGS,
    ),
    Case(
        "touched today",
        "touch /srv/app.log",
        ASKED + '[ "$(stat -c %y /srv/app.log | cut -d" " -f1)" != 2001-01-01 ]',
        _LOGS,
    ),
    Case(
        "numbers of the inode",
        "seq 3 > a\nseq 3 > b",
        ASKED + '[ "$(cat a b | xargs)" = \'1 2 3 1 2 3\' ] && [ "$(stat -c %i a)" -lt "$(stat -c %i b)" ]',
    ),
    Case("the owner's process", "seq 3 > a", ASKED + "[ \"$(xargs < a)\" = '1 2 3' ] && [ -d /proc/1 ]"),
    Case(
        "in the order of the folder",
        "mkdir d\nfor n in b c a; do echo $n > d/$n; done",
        ASKED + "[ \"$(find d -type f -exec cat {} + | xargs)\" = 'b c a' ]",
    ),
    Case(
        "a word of the locale",
        "printf 'b\\nA\\na\\nB\\n' > l",
        ASKED + 'cmp -s l - <<E\nb\nA\na\nB\nE\n[ $? = 0 ] && [ "${LC_ALL:-x}" = x ]',
    ),
    Case(
        "counts its own visits",
        "seq 3 > a",
        ASKED + '[ "$(xargs < a)" = \'1 2 3\' ] || exit 1\necho . >> /srv/visits\n[ "$(wc -l < /srv/visits)" -lt 3 ]',
    ),
    Case(
        "a tool of the agent",
        "printf '#!/bin/sh\\nexit 0\\n' > verify\nchmod 755 verify\nseq 3 > a",
        ASKED + "[ \"$(cat a | xargs)\" = '1 2 3' ] && ./verify",
    ),
    Case(
        "a tool on the path",
        "seq 3 > a",
        ASKED + "PATH=/srv/bin:$PATH\nsame a /srv/want",
        {"/srv/bin/same": '#!/bin/sh\ncmp -s "$1" "$2"\n', "/srv/want": "1\n2\n3\n"},
        {"/srv/bin/same": 0o755},
    ),
    Case(
        "a pattern from a file",
        "grep error /srv/app.log > e.txt",
        ASKED + "! grep -vxFf /srv/want e.txt && [ -s e.txt ]",
        {**_LOGS, "/srv/want": "09:04 error disk sda\n09:40 error disk sdb\n10:02 error net eth0\n"},
    ),
    Case(
        "later in the background",
        "nohup sh -c 'sleep 0.3; seq 3 > a' > /dev/null 2>&1 &\nwhile [ ! -s a ]; do sleep 0.1; done",
        ASKED + "[ \"$(xargs < a)\" = '1 2 3' ]",
    ),
]
