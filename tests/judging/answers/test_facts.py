"""Facts of an answer: blocks, commands, thought and action style, as a person would count them."""

import json

import pytest

from judging.answers.facts import AnswerFacts, answer_facts
from judging.shell.script import split_commands
from tests.judging.turns import read_turns


def in_block(script: str, language: str = "bash") -> str:
    return f"THOUGHT: I do the next step.\n\n```{language}\n{script}\n```"


@pytest.mark.parametrize(
    ("script", "texts"),
    [
        ("ls", ["ls"]),
        ("cd src && ls -la", ["cd src", "ls -la"]),
        ("a; b || c & d", ["a", "b", "c", "d"]),
        ("cat a | grep b | head -3", ["cat a | grep b | head -3"]),
        ("a |\n  b", ["a |\n  b"]),
        ("# only a comment\n\n  \n", []),
        ("ls # && rm", ["ls"]),
        ("echo 'a; b && c' \"d | e; f\"", ["echo 'a; b && c' \"d | e; f\""]),
        ("sed -n '1,5p' x \\\n  y", ["sed -n '1,5p' x \\\n  y"]),
        ("for f in a b; do echo $f; cat $f; done", ["for f in a b; do echo $f; cat $f; done"]),
        ("if [ -f x ]; then cat x; else ls; fi; pwd", ["if [ -f x ]; then cat x; else ls; fi", "pwd"]),
        (
            "while read l; do for x in y; do z; done; done < f && ls",
            ["while read l; do for x in y; do z; done; done < f", "ls"],
        ),
        ("case $x in a) ls;; (b) pwd;; esac; date", ["case $x in a) ls;; (b) pwd;; esac", "date"]),
        ("f() { ls; pwd; }; f", ["f() { ls; pwd; }", "f"]),
        ("(cd x && ls); pwd", ["(cd x && ls)", "pwd"]),
        ("x=$(cd a && ls; pwd) y", ["x=$(cd a && ls; pwd) y"]),
        ("echo `a; b`", ["echo `a; b`"]),
        ("diff <(ls a; ls b) <(ls c)", ["diff <(ls a; ls b) <(ls c)"]),
        ("echo done; echo fi", ["echo done", "echo fi"]),
        ("make 2>&1 | tail; make >&2 && make &> log", ["make 2>&1 | tail", "make >&2", "make &> log"]),
        ("cat <<< 'a; b'; ls", ["cat <<< 'a; b'", "ls"]),
        ("echo a#b; echo $#", ["echo a#b", "echo $#"]),
        ("arr=(a b); [[ a && b ]]", ["arr=(a b)", "[[ a && b ]]"]),
    ],
)
def test_commands_are_split_as_a_shell_would(script: str, texts: list[str]) -> None:
    assert [command.text for command in split_commands(script)] == texts


def test_a_heredocs_body_is_no_command() -> None:
    script = "cat > a.py <<'EOF' && python a.py\nimport os; os.system('ls && pwd')\nfor x in y: pass\nEOF\nls\n"
    commands = split_commands(script)
    assert [command.text for command in commands] == ["cat > a.py <<'EOF'", "python a.py", "ls"]
    assert "os.system" in commands[1].body


def test_heredocs_with_tabs_two_at_once_and_inside_a_substitution() -> None:
    assert len(split_commands("cat <<-A\n\tx; y\n\tA\nls")) == 2
    assert len(split_commands("paste <<A <<B\n1; 2\nA\n3; 4\nB\nls")) == 2
    assert len(split_commands("git commit -m \"$(cat <<'EOF'\nwhy; and (how\nEOF\n)\"\nls")) == 2


def test_a_swe_agent_edit_is_one_command() -> None:
    script = "edit 10:12\n    if a and b; then\nls\nend_of_edit\n"
    (command,) = split_commands(script)
    assert "ls" in command.body
    assert answer_facts(in_block(script, "")).action_style == "edit"


@pytest.mark.parametrize(
    ("text", "blocks", "commands"),
    [
        (in_block("ls"), 1, 1),
        (in_block("ls", ""), 1, 1),
        (in_block("ls", "sh"), 1, 1),
        (in_block("ls && pwd") + "\n" + in_block("date"), 2, 3),
        (in_block("print(1)", "python"), 0, 0),
        ("No block at all.", 0, 0),
        ("THOUGHT: `ls` would do.", 0, 0),
        ("THOUGHT: cut\n```bash\nls", 1, 1),
        (in_block("cat > R.md <<'EOF'\n```python\nx\n```\nEOF"), 1, 1),
        ("~~~bash\nls\n~~~", 1, 1),
    ],
)
def test_blocks_and_commands_are_counted(text: str, blocks: int, commands: int) -> None:
    facts = answer_facts(text)
    assert (facts.blocks, facts.commands) == (blocks, commands)


@pytest.mark.parametrize(
    ("text", "has_thought"),
    [
        ("THOUGHT: I look around.\n```bash\nls\n```", True),
        ("Let us look around first.\n```\nls\n```", True),
        ("```bash\nls\n```", False),
        ("THOUGHT:\n```bash\nls\n```", False),
        ("```bash\nls\n```\nI listed the files.", False),
        ("", False),
    ],
)
def test_a_thought_is_reasoning_before_the_block(text: str, has_thought: bool) -> None:
    assert answer_facts(text).has_thought is has_thought


STYLES = {
    "explore": [
        *("ls -la", "find . -name '*.py'", "tree -L 2", "find_file 'a.py' src", "cd src", "pwd"),
        *("git log --oneline -5", "git status"),
    ],
    "search": [
        *("grep -rn x src", "rg -n x", "search_dir 'x' src", "search_file x", "git grep x", "cd a && grep -rn x ."),
        "find . -name '*.py' | xargs grep -l x",
        *("find . -name '*.py' -exec grep -l 'x y' {} +", "for f in *.py; do grep x $f; done"),
    ],
    "read": [
        *("cat a.py", "sed -n '1,20p' a.py", "head -50 a.py", "open a.py 12", "goto 10", "scroll_down", "scroll_up"),
        *("git diff", "git show HEAD", "cat a.py | grep x", "nl -ba a.py | sed -n '1,9p'", "cd /repo && cat a.py"),
        *("awk 'NR<9' a.py", "export A=1 && cat a.py", 'bash -lc "cat a.py"', "(cd x && cat y)"),
        *("cat a.py 2>/dev/null", "git --no-pager diff"),
    ],
    "edit": [
        *("sed -i 's/a/b/' f", "sed -i.bak -e 's/a/b/' f", "sed -Ei 's/a/b/' f", "cat > f <<'EOF'\nls\nEOF"),
        *("cat <<EOF > f\nx\nEOF", "echo x >> f", "printf 'x' > f", "create a.py", "edit 1:1\nx\nend_of_edit"),
        *("tee f <<EOF\nx\nEOF", "touch a", "rm a", "mv a b", "git apply p", "git checkout -- f"),
        *("perl -pi -e 's/a/b/' f", "patch -p1 < p", "python - <<'EOF'\nopen('f', 'w').write('x')\nEOF"),
        *("echo x | tee f", "find . -name '*.pyc' -delete"),
    ],
    "test": [
        *("pytest -x", "python -m pytest tests", "python3 -m unittest", "tox -e py311", "make test", "npm test"),
        *("npm run test:unit", "cargo test", "go test ./...", "FOO=1 pytest", "sudo pytest", "timeout 10 pytest"),
        *("cd a && timeout -k 5 60 python -m pytest", "env A=1 pytest", "poetry run pytest", "uv run --with x pytest"),
        *("python manage.py test app", "python test_a.py", "./run_tests.sh", "bash run_tests.sh", "npx jest a"),
        *("coverage run -m pytest", "source venv/bin/activate && pytest", "python tests/test_x.py", "make check"),
    ],
    "submit": [
        "submit",
        "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
        "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A",
    ],
    "other": [
        *("python a.py", "pip install x", "echo hello", "echo x > /dev/null", "make build", "docker ps"),
        *("git commit -m x", "python -c 'print(1)'"),
    ],
}


@pytest.mark.parametrize(
    ("style", "script"), [(style, script) for style, scripts in STYLES.items() for script in scripts]
)
def test_action_style_of_the_first_real_command(style: str, script: str) -> None:
    assert answer_facts(in_block(script)).action_style == style


def test_facts_of_real_answers_in_both_layouts() -> None:
    turns = read_turns()
    facts = [answer_facts(turn.answer) for turn in turns]
    assert len(facts) == 57
    # One real answer ends in a raw <function=submit> instead of a block; all others hold exactly one.
    assert sorted(f.blocks for f in facts) == [0] + [1] * 56
    assert all(f.has_thought for f in facts)
    styles = [f.action_style for f in facts]
    assert {style: styles.count(style) for style in STYLES} == {
        "explore": 6, "search": 5, "read": 7, "edit": 21, "test": 1, "submit": 5, "other": 12,
    }  # fmt: skip


def test_hostile_input_is_read_in_seconds() -> None:
    for piece in ("((", "$(", "'", "a&&", "<<EOF\n", "`", '"$(', "<|", json.dumps({"a": "{;}"})):
        facts = answer_facts(in_block(piece * (60_000 // len(piece))))
        assert isinstance(facts, AnswerFacts)


@pytest.mark.parametrize(
    ("calls", "commands", "style", "thinks"),
    [
        (['bash {"command": "cd src && grep -rn pad ."}'], 2, "search", False),
        (['functions.execute_bash {"cmd": "pytest -q"}', 'bash {"command": "ls; pwd"}'], 3, "test", False),
        (['str_replace_editor {"command": "view", "path": "/a.py"}'], 1, "edit", False),
        (['get_weather {"city": "Ghent"}'], 1, "other", False),
        (["no call {"], 0, "other", True),
    ],
)
def test_commands_in_tool_calls_count_and_are_no_thought(
    calls: list[str], commands: int, style: str, thinks: bool
) -> None:
    text = "\n".join(f"[tool call call_{number}] {call}" for number, call in enumerate(calls))
    assert answer_facts(text) == AnswerFacts(thinks, 0, commands, style)
    assert answer_facts(f"I look for the function.\n{text}") == AnswerFacts(True, 0, commands, style)
