"""Cuts a shell script into words, operators and heredoc bodies."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPERATOR = re.compile(r"&&|\|\||;;&?|;&|\|&|[;&|()\n]")
_PLAIN = re.compile(r"[^\s;&|()<>'\"`$\\#]+")
_HEREDOC = re.compile(
    r"<<(?P<dash>-?)[ \t]*(?:'(?P<single>[^'\n]*)'|\"(?P<double>[^\"\n]*)\"|\\?(?P<bare>[^\s;&|()<>'\"]+))"
)
_REDIRECT = re.compile(r"(?:<<<|<>|>>|>\||>&|<&|&>>|&>|<|>)")
_EDIT = re.compile(r"edit[ \t]+\d+:\d+[^\n]*\n")
_END_OF_EDIT = re.compile(r"^[ \t]*end_of_edit[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ShellToken:
    """`kind` is word, operator or body. A word's text is without its quotes; `quoted` says whether it had any."""

    kind: str
    text: str
    start: int
    end: int
    quoted: bool = False


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def tokens(script: str) -> Iterator[ShellToken]:
    """Yield the tokens of a script in order. An unclosed quote runs to the end of the script."""
    return _Reader(script).read()


class _Reader:
    def __init__(self, script: str) -> None:
        self.script = script
        self.at = 0
        self.heredocs: list[tuple[str, bool]] = []
        self.starts_line = True

    def read(self) -> Iterator[ShellToken]:
        script, size = self.script, len(self.script)
        while self.at < size:
            char = script[self.at]
            if char in " \t\r":
                self.at += 1
            elif script.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                self.at = self._line_end()
            elif self.starts_line and char == "e" and (edit := _EDIT.match(script, self.at)):
                yield from self._swe_edit(edit)
            elif not script.startswith("&>", self.at) and (operator := _OPERATOR.match(script, self.at)):
                yield from self._operator(operator)
            else:
                self.starts_line = False
                yield self._word()

    def _operator(self, operator: re.Match[str]) -> Iterator[ShellToken]:
        self.at = operator.end()
        yield ShellToken("operator", operator[0], operator.start(), operator.end())
        self.starts_line = operator[0] == "\n"
        if self.starts_line and self.heredocs:
            for word, dashed in self.heredocs:
                yield self._heredoc_body(word, dashed)
            self.heredocs = []

    def _swe_edit(self, edit: re.Match[str]) -> Iterator[ShellToken]:
        position = edit.start()
        for word in edit[0].split():
            yield ShellToken("word", word, position, position + len(word))
            position = edit.end() - 1
        closing = _END_OF_EDIT.search(self.script, edit.end())
        stop = closing.start() if closing else len(self.script)
        yield ShellToken("body", self.script[edit.end() : stop], edit.end(), stop)
        self.at = closing.end() if closing else stop
        self.starts_line = False

    def _heredoc_body(self, word: str, dashed: bool) -> ShellToken:
        start = self.at
        while self.at < len(self.script):
            line_start, line_end = self.at, self._line_end()
            line = self.script[line_start:line_end].rstrip("\r")
            self.at = min(line_end + 1, len(self.script))
            if (line.lstrip("\t") if dashed else line) == word:
                return ShellToken("body", self.script[start:line_start], start, line_start)
        return ShellToken("body", self.script[start:], start, len(self.script))

    def _word(self) -> ShellToken:
        script, start = self.script, self.at
        parts: list[str] = []
        quoted = False
        while self.at < len(script):
            char = script[self.at]
            if (plain := _PLAIN.match(script, self.at)) is not None:
                parts.append(plain[0])
                self.at = plain.end()
            elif char in "'\"`":
                parts.append(self._quoted(char))
                quoted = True
            elif char == "\\":
                parts.append("" if script.startswith("\\\n", self.at) else script[self.at + 1 : self.at + 2])
                self.at += 2
            elif char == "$":
                parts.append(self._dollar())
            elif char in "<>" or script.startswith("&>", self.at):
                if self.at > start and not "".join(parts).isdigit():
                    break
                parts.append(self._redirect())
                break
            elif char == "(" and parts and parts[-1].endswith("="):
                parts.append(self._nested("(", ")"))
            elif char == "#":
                parts.append(char)
                self.at += 1
            else:
                break
        return ShellToken("word", "".join(parts), start, self.at, quoted)

    def _redirect(self) -> str:
        script = self.script
        if script.startswith(("<(", ">("), self.at):
            self.at += 1
            return script[self.at - 1] + self._nested("(", ")")
        if not script.startswith("<<<", self.at) and (heredoc := _HEREDOC.match(script, self.at)) is not None:
            word = next(w for w in (heredoc["single"], heredoc["double"], heredoc["bare"]) if w is not None)
            self.heredocs.append((word, bool(heredoc["dash"])))
            self.at = heredoc.end()
            return heredoc[0]
        redirect = _REDIRECT.match(script, self.at)
        text = redirect[0] if redirect else script[self.at]
        self.at += len(text)
        if text in (">&", "<&"):
            target = re.compile(r"\d+|-").match(script, self.at)
            if target:
                self.at = target.end()
                return text + target[0]
        return text

    def _quoted(self, quote: str) -> str:
        script = self.script
        start = self.at + 1
        if quote == "'":
            end = script.find("'", start)
            end = len(script) if end < 0 else end
            self.at = end + 1
            return script[start:end]
        self.at = start
        while self.at < len(script) and script[self.at] != quote:
            if script[self.at] == "\\":
                self.at += 2
            elif quote == '"' and script.startswith("$(", self.at):
                self.at += 1
                self._nested("(", ")")
            else:
                self.at += 1
        end = min(self.at, len(script))
        self.at = end + 1
        return re.sub(r"\\([\"$`\\])", r"\1", script[start:end])

    def _dollar(self) -> str:
        script, start = self.script, self.at
        self.at += 1
        if script.startswith("'", self.at):
            end = re.compile(r"(?:[^'\\]|\\.)*'?", re.DOTALL).match(script, self.at + 1)
            self.at = end.end() if end else self.at + 1
        elif script.startswith("(", self.at):
            self._nested("(", ")")
        elif script.startswith("{", self.at):
            self._nested("{", "}")
        return script[start : self.at]

    def _nested(self, opening: str, closing: str) -> str:
        """Skip a bracketed part with quotes and heredocs inside it; iterative, so depth costs nothing."""
        script, start, depth = self.script, self.at, 0
        inner: list[tuple[str, bool]] = []
        while self.at < len(script):
            char = script[self.at]
            if char == "\\":
                self.at += 2
                continue
            if char in "'`" or (char == '"'):
                self._flat_quoted(char)
                continue
            heredoc = _HEREDOC.match(script, self.at) if char == "<" and not script.startswith("<<<", self.at) else None
            if heredoc is not None:
                word = next(w for w in (heredoc["single"], heredoc["double"], heredoc["bare"]) if w is not None)
                inner.append((word, bool(heredoc["dash"])))
                self.at = heredoc.end()
                continue
            self.at += 1
            if char == "\n" and inner:
                for word, dashed in inner:
                    self._heredoc_body(word, dashed)
                inner = []
            depth += (char == opening) - (char == closing)
            if depth == 0:
                break
        return script[start : self.at]

    def _flat_quoted(self, quote: str) -> None:
        pattern = r"'[^']*'?" if quote == "'" else rf"{quote}(?:[^{quote}\\]|\\.)*{quote}?"
        match = re.compile(pattern, re.DOTALL).match(self.script, self.at)
        self.at = match.end() if match and match.end() > self.at else self.at + 1

    def _line_end(self) -> int:
        end = self.script.find("\n", self.at)
        return len(self.script) if end < 0 else end
