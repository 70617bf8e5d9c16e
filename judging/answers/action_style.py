"""What kind of move a command is: the action style of an answer."""

import re
from collections.abc import Sequence

from judging.shell.script import Command, split_commands
from judging.shell.words import word_set


def _by_name(**names_of: str) -> dict[str, str]:
    return {name: style for style, names in names_of.items() for name in names.split()}


# Commands whose style does not depend on their arguments; SWE-agent's own commands among them.
_STYLE_OF = _by_name(
    explore="ls ll dir tree find fd fdfind locate pwd which whereis type du df stat file pip pip3 cd find_file",
    search="grep egrep fgrep zgrep rg ag ack ack-grep pt search_dir search_file",
    read="cat head tail less more nl bat batcat view wc od xxd hexdump diff cmp jq strings "
    "open goto scroll_up scroll_down",
    edit="tee touch mkdir mv cp rm rmdir ln chmod patch ed ex vi vim nano emacs truncate install dos2unix "
    "edit create insert append undo_edit str_replace_editor apply_patch",
    test="pytest py.test tox nox nosetests nose2 ctest jest mocha vitest rspec phpunit ava karma trial stestr",
    submit="submit",
)
_GIT = _by_name(
    read="diff show blame cat-file",
    explore="log status branch ls-files ls-tree remote tag rev-parse reflog describe shortlog",
    search="grep",
    edit="apply checkout restore revert reset stash rm mv am cherry-pick clean",
)
_BUILD_TOOLS = word_set(
    "make gmake npm yarn pnpm bun cargo go mvn gradle gradlew mvnw dotnet mix rake sbt bazel swift composer deno just "
    "ninja hatch lein stack cabal flutter dart zig"
)
_SHELLS = word_set("bash sh zsh dash")
_RUNNERS = word_set("uv poetry pipenv hatch pdm rye conda mamba micromamba bundle coverage")
_WRAPPERS = word_set(
    "sudo env time nice nohup stdbuf command exec builtin timeout gtimeout xvfb-run unbuffer npx ionice"
)
_PREPARES = word_set("cd pushd export set source . shopt unset true :")
_WITH_VALUE = word_set("-n -I -P -L -k -s -u --signal --kill-after --with")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*|py")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_TEST_SCRIPT = re.compile(
    r"(?:run_?)?tests?(?:[_-][\w-]*)?\.(?:py|sh|js|rb|pl)|[\w-]+_tests?\.(?:py|js|rb)|[\w-]+\.(?:test|spec)\.\w+"
)
_WRITES = re.compile(r"\.write(?:_text|_bytes|lines)?\(|open\([^)]*['\"][wax]b?\+?['\"]|writeFileSync|fileinput")
_COMPLETE = re.compile(r"COMPLETE_TASK|MINI_SWE_AGENT_FINAL_OUTPUT")


def action_style(commands: Sequence[Command]) -> str:
    """Name the style of the first command that does something; a leading `cd`, `export` or `source` is skipped."""
    for position, command in enumerate(commands):
        words = _unwrapped(_first_stage(command.words))
        prepares = not words or words[0] in _PREPARES
        if (prepares or words[:2] == ["conda", "activate"]) and position + 1 < len(commands):
            continue
        return _style(command, words)
    return "other"


def _style(command: Command, words: list[str]) -> str:
    if not words:
        return "other"
    inner = _inner_script(command, words)
    if inner is not None:
        return action_style(split_commands(inner))
    name, arguments = words[0].rsplit("/", 1)[-1], words[1:]
    if name in ("echo", "printf", "cat", ":", "true"):
        return _printing(command, name, arguments)
    if name in ("sed", "gsed", "perl", "ruby", "awk", "gawk"):
        return _stream_edit(name, arguments)
    if name == "find":
        return _find(command, arguments)
    if name == "git":
        return _git(arguments)
    if name == "xargs":
        return action_style(split_commands(" ".join(_without_options(arguments))))
    if name in _BUILD_TOOLS:
        return _build(arguments)
    if _PYTHON.fullmatch(name):
        return _python(command, arguments)
    if _TEST_SCRIPT.fullmatch(name):
        return "test"
    if name in ("pip", "pip3") and not {"list", "show", "freeze"}.intersection(arguments):
        return "other"
    if name in _SHELLS or name == "node":
        return "test" if any(_TEST_SCRIPT.fullmatch(a.rsplit("/", 1)[-1]) for a in arguments) else "other"
    return _STYLE_OF.get(name, "other")


def _printing(command: Command, name: str, arguments: list[str]) -> str:
    if _COMPLETE.search(" ".join(arguments)):
        return "submit"
    if _writes_file(command.words):
        return "edit"
    return "read" if name == "cat" and arguments else "other"


def _writes_file(words: Sequence[str]) -> bool:
    """Whether output is sent to a file: `> f`, `>> f`, `| tee f`, but not `2>&1` and not /dev/null."""
    for position, word in enumerate(words):
        target = words[position + 1] if position + 1 < len(words) else ""
        if word in (">", ">>", ">|", "&>", "1>", "1>>") and not target.startswith("/dev/"):
            return True
        if word == "|" and target in ("tee", "patch"):
            return True
    return False


def _stream_edit(name: str, arguments: list[str]) -> str:
    flags = [argument for argument in arguments if argument.startswith("-")]
    in_place = any(
        re.fullmatch(r"-[a-zA-Z]*i.*|--in-place.*", flag) and not flag.startswith("-inplace=") for flag in flags
    )
    if in_place:
        return "edit"
    return "other" if name in ("perl", "ruby") else "read"


def _find(command: Command, arguments: list[str]) -> str:
    if "-delete" in arguments:
        return "edit"
    for flag in ("-exec", "-execdir", "-ok"):
        if flag in arguments:
            style = action_style(split_commands(" ".join(_quoted(arguments[arguments.index(flag) + 1 :]))))
            return style if style in ("search", "edit", "read") else "explore"
    if "xargs" in command.words:
        rest = command.words[command.words.index("xargs") + 1 :]
        style = action_style(split_commands(" ".join(_quoted(_without_options(list(rest))))))
        return style if style in ("search", "edit", "read") else "explore"
    return "explore"


def _git(arguments: list[str]) -> str:
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "-c") else rest[1:]
    return _GIT.get(rest[0], "other") if rest else "other"


def _build(arguments: list[str]) -> str:
    targets = [argument for argument in arguments if not argument.startswith("-")]
    return (
        "test" if any(re.search(r"(?:^|[:_\W])tests?(?:$|[:_\W])|^check$", target) for target in targets) else "other"
    )


def _python(command: Command, arguments: list[str]) -> str:
    if "-m" in arguments:
        module = arguments[arguments.index("-m") + 1 :][:1]
        if module and (module[0] in ("unittest", "doctest", "coverage") or _STYLE_OF.get(module[0]) == "test"):
            return "test"
        if module and module[0] == "pip":
            return "other"
    if "-c" in arguments or command.body:
        code = command.body or " ".join(arguments)
        return "edit" if _WRITES.search(code) else "other"
    scripts = [argument.rsplit("/", 1)[-1] for argument in arguments if not argument.startswith("-")]
    if scripts and (
        _TEST_SCRIPT.fullmatch(scripts[0]) or (scripts[0] in ("manage.py", "setup.py") and "test" in scripts[1:])
    ):
        return "test"
    return "other"


def _inner_script(command: Command, words: list[str]) -> str | None:
    """The part of a loop, condition, group, subshell or `bash -c` that acts first."""
    name = words[0]
    if name in ("for", "while", "until", "if", "case", "select"):
        match = re.search(r"(?:^|[;\s])(?:do|then|in\s+[^()\n;]*\))\s(?P<rest>.*)", command.text, re.DOTALL)
        return match["rest"] if match else None
    if name in ("{", "("):
        return command.text.lstrip("({ \t\n")
    if name.rsplit("/", 1)[-1] in _SHELLS:
        for position, word in enumerate(words[1:], 1):
            if re.fullmatch(r"-[a-z]*c", word) and position + 1 < len(words):
                return words[position + 1]
        return command.body or None
    return None


def _first_stage(words: Sequence[str]) -> list[str]:
    stage = list(words[: words.index("|")] if "|" in words else words)
    return stage or list(words)


def _unwrapped(words: list[str]) -> list[str]:
    """Remove `FOO=1`, `sudo`, `timeout 10`, `poetry run` and similar prefixes."""
    while words:
        name = words[0].rsplit("/", 1)[-1]
        if _ASSIGNMENT.fullmatch(words[0]) or words[0] == "!":
            words = words[1:]
        elif name in _WRAPPERS:
            words = _without_options(words[1:])
            if name in ("timeout", "gtimeout") and words:
                words = words[1:]
        elif name in _RUNNERS and len(words) > 2 and words[1] in ("run", "exec"):
            rest = _without_options(words[2:])
            words = ["python", *words[2:]] if name == "coverage" else rest
        else:
            break
    return words


def _without_options(words: list[str]) -> list[str]:
    position = 0
    while position < len(words) and words[position].startswith("-"):
        position += 2 if words[position] in _WITH_VALUE else 1
    return words[position:]


def _quoted(words: Sequence[str]) -> list[str]:
    return ["'" + word.replace("'", "'\\''") + "'" if re.search(r"[\s|&;<>()$'\"]", word) else word for word in words]
