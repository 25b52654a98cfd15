"""Syntax tree of a fish text, in the form of `shell_syntax`.

Rules of this file: pure, total within the same bounds. Blocks are not nested in the tree: every branch counts as taken,
so the words that open, continue and close a block are skipped, and what stands between them is one list of pipelines.
The grammar is that of the fish manual, "The fish language".
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from blockpty.control.shell_syntax import (
    EMPTY,
    Compound,
    Incomplete,
    Parameter,
    Part,
    Pipeline,
    Redirect,
    Sequence,
    Simple,
    Substitution,
    Unparsed,
    WordNode,
    WordScanner,
    quote,
)

_BLANKS: Final = re.compile(r"(?:[ \t]+|\\\n)*(?:(?<![^ \t\n;&|()])#[^\n]*)?")
_REDIRECT: Final = re.compile(r"([0-9]*)(&>>|&>|>>|>\?|>&|<&|<\?|<|>)")
_PIPE: Final = re.compile(r"(?:[0-9]>|&)?\|(?!\|)")
_VARIABLE: Final = re.compile(r"\$+([A-Za-z_]\w*)(\[[^\]$()\n]*\])*")
_SKIPPED: Final = frozenset({"begin", "if", "while", "else", "and", "or", "not", "!", "time"})
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CODE: Final = re.compile(r"[xX]([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,6})|([0-7]{1,3})")


def parse(text: str) -> Sequence:
    """Return the tree of a text.

    Raises:
        Unparsed: it cannot be read exactly.
    """
    return _FishParser(text).whole()


class _FishParser(WordScanner):
    """The reader of fish, and the number of blocks that are open."""

    chunk: ClassVar = re.compile(r"[^ \t\n\\'\"$|&;()<>]+")
    double_chunk: ClassVar = re.compile(r"[^\"\\$]+")
    double_escapes: ClassVar = '"$\\'

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.blocks = 0

    def finish(self) -> None:
        if self.blocks:
            raise Incomplete("has a block without end")

    def sequence(self) -> Sequence:
        """Read pipelines up to a closing bracket or the end of the text."""
        self.deeper()
        blocks, self.blocks = self.blocks, 0
        found: list[tuple[str, Pipeline]] = []
        while True:
            self.separators()
            if self.at >= len(self.text) or self.text[self.at] == ")":
                break
            found.append(("", self.pipeline()))
        if self.blocks and self.depth > 1:
            raise Incomplete("has a block without end")
        self.blocks += blocks
        self.depth -= 1
        return Sequence(found)

    def separators(self) -> None:
        while True:
            self.blanks()
            if self.at < len(self.text) and self.text[self.at] in "\n;&" and not _REDIRECT.match(self.text, self.at):
                self.at += 1
            elif self.text.startswith("||", self.at):
                self.at += 2
            else:
                return

    def pipeline(self) -> Pipeline:
        commands: list[Simple | Compound] = [self.command()]
        while True:
            self.blanks()
            pipe = _PIPE.match(self.text, self.at)
            if pipe is None:
                return Pipeline(commands)
            self.at = pipe.end()
            self.separators()
            commands.append(self.command())

    def command(self) -> Simple:
        """Read a simple command, without the words of blocks before it."""
        found = Simple([], [], [])
        start = self.at
        while True:
            self.blanks()
            text = self.text
            if self.at >= len(text) or _PIPE.match(text, self.at):
                break
            redirect = _REDIRECT.match(text, self.at)
            if redirect is not None:
                self.at = redirect.end()
                self.blanks()
                found.redirects.append(Redirect(redirect[2].rstrip("?"), self.word(), redirect[1]))
            elif text[self.at] in "\n;&|)":
                break
            else:
                word = self.word()
                if not self.assigns(found, word):
                    found.words.append(word)
                    self.keyword(found)
        found.source = self.text[start : self.at].strip()
        return found

    def assigns(self, found: Simple, word: WordNode) -> bool:
        first = word.parts[0]
        if found.words or not isinstance(first, str):
            return False
        sign = re.match(r"([A-Za-z_]\w*)=", first)
        if sign is None:
            return False
        found.assignments.append((sign[1], (WordNode((first[sign.end() :], *word.parts[1:]), word.quoted),)))
        return True

    def keyword(self, found: Simple) -> None:
        """Act on the first word of a command if it belongs to a block."""
        word = found.words[0]
        if len(found.words) > 1 or word.quoted or len(word.parts) != 1 or not isinstance(word.parts[0], str):
            return
        name = word.parts[0]
        if name in _SKIPPED:
            if name in ("begin", "if", "while") and not self.continues():
                self.blocks += 1
            found.words.clear()
        elif name == "end":
            if not self.blocks:
                raise Unparsed("has an end without a block")
            self.blocks -= 1
            found.words.clear()
        elif name in ("for", "switch", "case", "function"):
            self.blocks += name != "case"
            found.words[:] = [WordNode((":",))]
        elif name.startswith("{") or name == "}":
            raise Unparsed("has a compound command of a new form")

    def continues(self) -> bool:
        """Whether this is the `if` of an `else if`, which opens no block of its own."""
        return re.search(r"\belse[ \t]+if$", self.text[max(0, self.at - 64) : self.at]) is not None

    def piece(self, char: str, parts: list[Part]) -> bool | None:
        if char == "\\":
            parts.append(self.escape())
        elif char == "'":
            parts.append(self.single())
        elif char == '"':
            parts += self.double()
        elif char in "$(":
            parts += self.expansions(quoted=False)
            return False
        else:
            return None
        return True

    def escape(self) -> str:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "":
            raise Incomplete("ends with a backslash")
        if following == "\n":
            self.at += 2
            return ""
        code = _CODE.match(self.text, self.at + 1)
        if code is not None:
            self.at = code.end()
            digits = next(group for group in code.groups() if group is not None)
            number = int(digits, 8 if code[4] is not None else 16)
            if not 0 < number < 0xD800:
                raise Unparsed("has a character that is not checked")
            return quote(chr(number))
        self.at += 2
        return quote(_ESCAPES.get(following, following))

    def single(self) -> str:
        found = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if found is None:
            raise Incomplete("has a quote without end")
        self.at = found.end()
        return quote(re.sub(r"\\(['\\])", r"\1", found[1])) or EMPTY

    def expansions(self, *, quoted: bool) -> list[Part]:
        text = self.text
        if text.startswith(("(", "$("), self.at):
            self.at += 1 + (text[self.at] == "$")
            body = self.sequence()
            self.close(")")
            return [Substitution(body, quoted)]
        name = _VARIABLE.match(text, self.at)
        if name is None:
            self.at += 1
            return ["$"]
        self.at = name.end()
        if text.startswith("[", self.at):
            raise Unparsed("has an index that is computed")
        return [Parameter(name[1], quoted, plain=name[0] == "$" + name[1])]

    def blanks(self) -> None:
        found = _BLANKS.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
