"""Syntax tree of a shell text: lists, pipelines, compound commands, simple commands and their words.

Rules of this file: pure, total within bounds. It reads what bash reads (and zsh and sh, where they agree) and expands
nothing. A text that it cannot read exactly raises `Unparsed` with the reason, so that the caller never works with a
guess. Quoted characters that would otherwise mean something to an expansion are kept apart from plain ones (`quote`).

The grammar is that of the bash manual, chapter 3, and of POSIX, XCU 2.10. Each character is read once; the number of
words and the depth are bounded, so the time is linear in the text.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final, TypeAlias

from msgspec import Struct, field

LONGEST: Final = 1 << 20
"""Characters of a text; a longer one is not read."""
MOST_STEPS: Final = 40_000
DEEPEST: Final = 40

_QUOTED: Final = 0xF0000
_MEANING: Final = "{},*?[]~"
_QUOTE: Final = {ord(char): chr(_QUOTED + ord(char)) for char in _MEANING}
_PLAIN: Final = {_QUOTED: None, **{_QUOTED + ord(char): char for char in _MEANING}}
EMPTY: Final = chr(_QUOTED)
"""Empty quotes: a word of nothing else stays a word."""


class Unparsed(Exception):
    """A text that cannot be read exactly; the message completes "the shell text ..."."""


class Incomplete(Unparsed):
    """A text that ends too early: a quote, a bracket or a compound command is still open."""


def quote(text: str) -> str:
    """Mark each character that an expansion would act on as quoted."""
    return text.translate(_QUOTE)


def unquote(text: str) -> str:
    """Return the text with the marks of `quote` removed."""
    return text if text.isascii() else text.translate(_PLAIN)


class Parameter(Struct, frozen=True):
    """`$name` or `${name...}`; `plain` when nothing but the name stands in it; `assigns` for `${name:=value}`."""

    name: str
    quoted: bool
    plain: bool = True
    inner: tuple[Part, ...] = ()
    assigns: bool = False


class Substitution(Struct, frozen=True):
    """`$(...)`, backticks, or with `kind` "<" or ">" a process substitution."""

    body: Sequence
    quoted: bool
    kind: str = "$"


class Arithmetic(Struct, frozen=True):
    """`$((...))`, and the expansions in it."""

    inner: tuple[Part, ...]


Part: TypeAlias = "str | Parameter | Substitution | Arithmetic"


class WordNode(Struct, frozen=True):
    """A word as written: literal pieces with quoted characters marked, and expansions. `quoted`: any quoting in it."""

    parts: tuple[Part, ...]
    quoted: bool = False


class Redirect(Struct):
    """A redirection; `body` holds the parts of a here-document, once its line has been reached."""

    operator: str
    target: WordNode
    descriptor: str = ""
    body: tuple[Part, ...] = ()


class Simple(Struct):
    """A simple command: assignments before it, words, redirections, and where it stands in the text."""

    words: list[WordNode]
    assignments: list[tuple[str, tuple[WordNode, ...]]]
    redirects: list[Redirect]
    source: str = ""


class Compound(Struct):
    """Bodies that run under some condition or in a subshell; `words` are only expanded. `kind`: its first word."""

    kind: str
    bodies: list[Sequence]
    words: list[WordNode] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    name: str = ""


class Pipeline(Struct):
    """Commands joined by `|`."""

    commands: list[Simple | Compound]


class Sequence(Struct):
    """Pipelines, each with the operator before it: "", "&&" or "||"."""

    pipelines: list[tuple[str, Pipeline]]


_WHOLE: Final = re.compile(r"[A-Za-z0-9_./:@%+,^\-]+(?=[ \t\n;]|$)")
_BLANKS: Final = re.compile(r"(?:[ \t]+|\\\n)*(?:#[^\n]*)?")
_BODY: Final = re.compile(r"[^\\`$]+")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_BRACED: Final = re.compile(r"([#!]?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]))")
_ASSIGNS: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]\n]*\])?\+?=")
_REDIRECT: Final = re.compile(r"([0-9]+|\{[A-Za-z_]\w*\})?(&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||<(?!\()|>(?!\())")
_RESERVED: Final = re.compile(
    r"(if|then|elif|else|fi|while|until|for|select|case|esac|do|done|function|time|coproc|\{|\}|!|\[\[)"
    r"(?=[ \t\n;&|()<>]|$)"
)
_ANSI: Final = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.))",
    re.DOTALL,
)
_ANSI_CHARS: Final = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_ENDS: Final = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})


def parse(text: str) -> Sequence:
    """Return the tree of a text.

    Raises:
        Unparsed: the text is not shell, is too long or too deep, or uses something that is not read here.
    """
    return _CommandParser(text).whole()


class WordScanner:
    """A cursor in a text, and how the words of any shell are put together."""

    chunk: ClassVar[re.Pattern[str]] = re.compile(r"[^ \t\n\\'\"`$|&;()<>]+")
    """Characters of a word that mean nothing."""
    double_chunk: ClassVar[re.Pattern[str]] = re.compile(r"[^\"\\`$]+")
    """The same, inside double quotes."""
    double_escapes: ClassVar[str] = '$`"\\'
    """What a backslash inside double quotes quotes."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        self.steps = 0
        self.depth = depth

    def whole(self) -> Sequence:
        """Read the whole text."""
        if len(self.text) > LONGEST:
            raise Unparsed("is too long to be checked")
        tree = self.sequence()
        if self.at < len(self.text):
            raise Unparsed(f"has an unexpected {self.text[self.at]!r}")
        self.finish()
        return tree

    def sequence(self) -> Sequence:
        """Read pipelines up to what ends a list."""
        raise NotImplementedError

    def finish(self) -> None:
        """Raise Incomplete if something is open at the end of the text."""
        raise NotImplementedError

    def piece(self, char: str, parts: list[Part]) -> bool | None:
        """Read what a character begins that means something in a word; return whether it quotes, None at the end."""
        raise NotImplementedError

    def expansions(self, *, quoted: bool) -> list[Part]:
        """Read what a dollar sign begins, or whatever else begins an expansion inside double quotes."""
        raise NotImplementedError

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unparsed("is nested too deeply to be checked")

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Unparsed("is too long to be checked")

    def word(self) -> WordNode:
        self.step()
        text, start = self.text, self.at
        parts: list[Part] = []
        quoted = False
        while self.at < len(text):
            chunk = self.chunk.match(text, self.at)
            if chunk is not None:
                parts.append(chunk[0])
                self.at = chunk.end()
                continue
            quotes = self.piece(text[self.at], parts)
            if quotes is None:
                break
            quoted |= quotes
        if self.at == start:
            if start >= len(text):
                raise Incomplete("ends where a word belongs")
            raise Unparsed(f"has an unexpected {text[start]!r}")
        return WordNode(tuple(parts), quoted)

    def double(self) -> list[Part]:
        """Read what is in double quotes, and past the closing one."""
        self.at += 1
        parts: list[Part] = []
        text = self.text
        while self.at < len(text):
            chunk = self.double_chunk.match(text, self.at)
            if chunk is not None:
                parts.append(quote(chunk[0]))
                self.at = chunk.end()
            elif text[self.at] == '"':
                self.at += 1
                return parts or [EMPTY]
            else:
                self.escaped(self.double_escapes, parts)
        raise Incomplete("has a quote without end")

    def escaped(self, escapes: str, parts: list[Part]) -> None:
        """Read a backslash or an expansion inside double quotes or a here-document."""
        if self.text[self.at] != "\\":
            parts += self.expansions(quoted=True)
            return
        following = self.text[self.at + 1 : self.at + 2]
        if following != "\n":
            parts.append(quote(following if following and following in escapes else "\\" + following))
        self.at += 2

    def close(self, bracket: str) -> None:
        if not self.text.startswith(bracket, self.at):
            raise Incomplete("has a bracket without end")
        self.at += 1


class _CommandParser(WordScanner):
    """The reader of bash, and the here-documents whose bodies follow the current line."""

    def __init__(self, text: str, depth: int = 0) -> None:
        super().__init__(text, depth)
        self.pending: list[tuple[Redirect, str, bool]] = []

    # --- lists

    def sequence(self) -> Sequence:
        """Read pipelines up to what ends a list: `)`, `;;`, a reserved word or the end of the text."""
        self.deeper()
        found: list[tuple[str, Pipeline]] = []
        operator = ""
        while True:
            self.lines()
            if self.ended():
                break
            found.append((operator, self.pipeline()))
            self.blanks()
            operator = self.separator()
            if operator == ";;":
                break
        if operator in ("&&", "||"):
            raise Incomplete(f"ends after {operator}")
        self.depth -= 1
        return Sequence(found)

    def separator(self) -> str:
        text, at = self.text, self.at
        two = text[at : at + 2]
        if two in ("&&", "||"):
            self.at += 2
            return two
        if two in (";;", ";&"):
            return ";;"
        if text[at : at + 1] in (";", "&"):
            self.at += 1
        return ""

    def ended(self) -> bool:
        text, at = self.text, self.at
        if at >= len(text) or text[at] == ")" or text.startswith((";;", ";&"), at):
            return True
        word = _RESERVED.match(text, at)
        return word is not None and word[1] in _ENDS

    def pipeline(self) -> Pipeline:
        commands = [self.command()]
        while True:
            self.blanks()
            if self.text.startswith("|", self.at) and not self.text.startswith("||", self.at):
                self.at += 2 if self.text.startswith("|&", self.at) else 1
                self.lines()
                commands.append(self.command())
            else:
                return Pipeline(commands)

    # --- commands

    def command(self) -> Simple | Compound:
        self.step()
        while True:
            self.blanks()
            text, at = self.text, self.at
            word = _RESERVED.match(text, at)
            if word is None or word[1] not in ("!", "time"):
                break
            self.at = word.end()
            self.blanks()
            if word[1] == "time" and re.compile(r"-p(?=[ \t\n;]|$)").match(self.text, self.at):
                self.at += 2
                self.blanks()
            if word[1] == "time" and (self.at >= len(self.text) or self.text[self.at] in "\n;"):
                return Simple([], [], [], text[at : self.at])
        if word is not None:
            compound = self.compound(word[1], word.end())
        elif text.startswith("(", at):
            compound = self.arithmetic_command() if text.startswith("((", at) else self.subshell()
        else:
            found = self.simple()
            if isinstance(found, Simple):
                return found
            compound = self.function(found)
        self.trailing_redirects(compound)
        return compound

    def compound(self, kind: str, end: int) -> Compound:
        if kind in _ENDS:
            raise Unparsed(f"has {kind!r} where a command belongs")
        if kind == "coproc":
            raise Unparsed("starts a coprocess")
        self.at = end
        if kind == "if":
            return self.conditional()
        if kind in ("while", "until"):
            bodies = [self.sequence()]
            self.expect("do")
            bodies.append(self.sequence())
            self.expect("done")
            return Compound(kind, bodies)
        if kind in ("for", "select"):
            return self.loop(kind)
        if kind == "case":
            return self.cases()
        if kind == "{":
            body = self.sequence()
            self.expect("}")
            return Compound("{", [body])
        if kind == "[[":
            return self.test()
        self.blanks()
        name = self.word()
        self.blanks()
        if self.text.startswith("(", self.at):
            self.parentheses()
        return self.function(name)

    def conditional(self) -> Compound:
        bodies = [self.sequence()]
        self.expect("then")
        bodies.append(self.sequence())
        while True:
            word = self.reserved()
            if word == "elif":
                bodies.append(self.sequence())
                self.expect("then")
                bodies.append(self.sequence())
            elif word == "else":
                bodies.append(self.sequence())
                self.expect("fi")
                return Compound("if", bodies)
            elif word == "fi":
                return Compound("if", bodies)
            else:
                raise Incomplete("has an if without fi")

    def loop(self, kind: str) -> Compound:
        self.blanks()
        if self.text.startswith("((", self.at):
            compound = Compound("while", [], [WordNode(self.arithmetic(self.at + 2))])
        else:
            name = _NAME.match(self.text, self.at)
            if name is None:
                raise Unparsed("has a loop without a name")
            self.at = name.end()
            compound = Compound(kind, [], name=name[0])
            self.lines()
            if re.compile(r"in(?=[ \t\n;])").match(self.text, self.at):
                self.at += 2
                self.blanks()
                while self.at < len(self.text) and self.text[self.at] not in "\n;":
                    compound.words.append(self.word())
                    self.blanks()
            else:
                compound.words.append(WordNode((Parameter("@", quoted=True),)))
        self.blanks()
        if self.text.startswith(";", self.at):
            self.at += 1
        self.lines()
        closing = "done" if self.reserved() == "do" else "}"
        if closing == "}":
            raise Unparsed("has a loop without do")
        compound.bodies.append(self.sequence())
        self.expect(closing)
        return compound

    def cases(self) -> Compound:
        self.blanks()
        compound = Compound("case", [], [self.word()])
        self.lines()
        if re.compile(r"in(?=[ \t\n])").match(self.text, self.at) is None:
            raise Unparsed("has a case without in")
        self.at += 2
        while True:
            self.lines()
            word = _RESERVED.match(self.text, self.at)
            if word is not None and word[1] == "esac":
                self.at = word.end()
                return compound
            if self.at >= len(self.text):
                raise Incomplete("has a case without esac")
            if self.text[self.at] == "(":
                self.at += 1
            while True:
                self.blanks()
                compound.words.append(self.word())
                self.blanks()
                sign = self.text[self.at : self.at + 1]
                self.at += 1
                if sign == ")":
                    break
                if sign != "|":
                    raise Unparsed("has a case that cannot be followed")
            compound.bodies.append(self.sequence())
            ending = re.compile(r";;&|;;|;&").match(self.text, self.at)
            if ending is not None:
                self.at = ending.end()

    def test(self) -> Compound:
        """Read `[[ ... ]]`: its operators are no operators of the shell, and its words are only expanded."""
        compound = Compound("[[", [])
        while True:
            self.lines()
            if re.compile(r"\]\](?=[ \t\n;&|)]|$)").match(self.text, self.at):
                self.at += 2
                return compound
            if self.at >= len(self.text):
                raise Incomplete("has a [[ without ]]")
            if self.text[self.at] in "()<>|&" and not self.text.startswith(("<(", ">("), self.at):
                self.at += 1
            else:
                if self.text[self.at] == ";":
                    raise Unparsed("has a [[ without ]]")
                compound.words.append(self.word())

    def subshell(self) -> Compound:
        self.at += 1
        body = self.sequence()
        self.close(")")
        return Compound("(", [body])

    def arithmetic_command(self) -> Compound:
        start, pending = self.at, len(self.pending)
        try:
            return Compound("((", [], [WordNode(self.arithmetic(start + 2))])
        except _NotArithmetic:
            self.at = start
            del self.pending[pending:]
            return self.subshell()

    def function(self, name: WordNode) -> Compound:
        self.lines()
        if not self.text.startswith(("{", "(", "if", "for", "while", "until", "case", "select", "[["), self.at):
            raise Unparsed("defines a function that cannot be followed")
        body = self.command()
        literal = "".join(part for part in name.parts if isinstance(part, str))
        return Compound("function", [Sequence([("", Pipeline([body]))])], name=unquote(literal))

    def parentheses(self) -> None:
        self.at += 1
        self.blanks()
        self.close(")")

    def simple(self) -> Simple | WordNode:
        """Read a simple command; or the name of a function that is defined here, with its brackets."""
        text, start = self.text, self.at
        found = Simple([], [], [])
        while True:
            whole = _WHOLE.match(text, self.at)
            if whole is not None and not (whole[0].isdigit() and text[whole.end() : whole.end() + 1] in ("<", ">")):
                self.step()
                self.at = whole.end()
                found.words.append(WordNode((whole[0],)))
            elif self.redirect(found.redirects):
                pass
            elif self.at >= len(text) or (text[self.at] in " \t\n|&;()<>" and not self.substitutes()):
                if found.words or found.assignments or found.redirects:
                    break
                if self.at >= len(text):
                    raise Incomplete("ends where a command belongs")
                raise Unparsed(f"has {text[self.at]!r} where a command belongs")
            else:
                assigns = None if found.words else _ASSIGNS.match(text, self.at)
                if assigns is not None:
                    found.assignments.append(self.assignment(assigns))
                else:
                    found.words.append(self.word())
            end = self.at
            self.blanks()
            if self.at < len(text) and text[self.at] == "(" and self.at >= end:
                if len(found.words) == 1 and not found.assignments and not found.redirects:
                    self.parentheses()
                    return found.words[0]
                raise Unparsed("has a bracket that cannot be followed")
        found.source = text[start : self.at].strip()
        return found

    def assignment(self, assigns: re.Match[str]) -> tuple[str, tuple[WordNode, ...]]:
        index = assigns[2] or ""
        if "$" in index or "`" in index:
            raise Unparsed("assigns to an element that is computed")
        self.at = assigns.end()
        name = assigns[1] + ("" if assigns[0].endswith(assigns[1] + "=") else "[]")
        if self.text.startswith("(", self.at):
            return name + ("" if name.endswith("[]") else "[]"), self.array()
        if self.at >= len(self.text) or self.text[self.at] in " \t\n|&;()<>":
            return name, (WordNode(("",)),)
        return name, (self.word(),)

    def array(self) -> tuple[WordNode, ...]:
        self.at += 1
        words: list[WordNode] = []
        while True:
            self.lines()
            if self.text.startswith(")", self.at):
                self.at += 1
                return tuple(words)
            if self.at >= len(self.text):
                raise Incomplete("has a bracket without end")
            words.append(self.word())

    def redirect(self, redirects: list[Redirect]) -> bool:
        sign = _REDIRECT.match(self.text, self.at)
        if sign is None:
            return False
        self.at = sign.end()
        self.blanks()
        if self.at >= len(self.text) or (self.text[self.at] in "\n|&;()<>" and not self.substitutes()):
            raise Unparsed("has a redirection without a target")
        start = self.at
        found = Redirect(sign[2], self.word(), sign[1] or "")
        if sign[2] in ("<<", "<<-"):
            raw = self.text[start : self.at]
            if "$" in raw or "`" in raw:
                raise Unparsed("has a here-document whose end is computed")
            ending = "".join(unquote(part) for part in found.target.parts if isinstance(part, str))
            self.pending.append((found, ending, found.target.quoted))
        redirects.append(found)
        return True

    def trailing_redirects(self, compound: Compound) -> None:
        while True:
            self.blanks()
            if not self.redirect(compound.redirects):
                return

    def substitutes(self) -> bool:
        return self.text.startswith(("<(", ">("), self.at)

    # --- words

    def piece(self, char: str, parts: list[Part]) -> bool | None:
        text = self.text
        if char == "\\":
            following = text[self.at + 1 : self.at + 2]
            self.at += 2
            if following == "\n":
                return False
            parts.append(quote(following) if following else "\\")
            return True
        if char == "'":
            parts.append(self.single())
            return True
        if char == '"':
            parts += self.double()
            return True
        if char in "$`":
            quotes = text.startswith(("$'", '$"'), self.at)
            parts += self.expansions(quoted=False)
            return quotes
        if char in "<>" and self.substitutes():
            self.at += 2
            body = self.sequence()
            self.close(")")
            parts.append(Substitution(body, quoted=True, kind=char))
        elif char == "(" and parts and _array_begins(parts):
            for element in self.array():
                parts += element.parts
        elif char == "(" and parts and isinstance(parts[-1], str) and parts[-1].endswith(("?", "*", "+", "@", "!")):
            raise Unparsed("has an extended pattern")
        else:
            return None
        return False

    def single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Incomplete("has a quote without end")
        found = self.text[self.at + 1 : end]
        self.at = end + 1
        return quote(found) or EMPTY

    def expansions(self, *, quoted: bool) -> list[Part]:
        return [self.backtick(quoted=quoted)] if self.text[self.at] == "`" else self.dollar(quoted=quoted)

    def backtick(self, *, quoted: bool) -> Substitution:
        found = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self.text, self.at)
        if found is None:
            raise Incomplete("has a backtick without end")
        self.at = found.end()
        escapes = r"\\([$`\\\"])" if quoted else r"\\([$`\\])"
        inner = re.sub(escapes, r"\1", found[1])
        return Substitution(self.inner(inner), quoted)

    def inner(self, text: str) -> Sequence:
        """Read a text of its own with the steps that are left."""
        parser = _CommandParser(text, self.depth)
        parser.steps = self.steps
        tree = parser.whole()
        self.steps = parser.steps
        return tree

    def dollar(self, *, quoted: bool) -> list[Part]:
        self.step()
        text, at = self.text, self.at
        following = text[at + 1 : at + 2]
        if following == "(":
            if text.startswith("$((", at):
                pending = len(self.pending)
                try:
                    return [Arithmetic(self.arithmetic(at + 3))]
                except _NotArithmetic:
                    del self.pending[pending:]
            self.at = at + 2
            body = self.sequence()
            self.close(")")
            return [Substitution(body, quoted)]
        if following == "{":
            return [self.braced(quoted=quoted)]
        if following == "'" and not quoted:
            return [self.ansi()]
        if following == '"' and not quoted:
            self.at += 1
            return self.double()
        if following == "[":
            raise Unparsed("has arithmetic of an old form")
        name = _PARAMETER.match(text, at + 1)
        if name is None:
            if text.startswith("\\\n", at + 1):
                raise Unparsed("has an expansion in two lines")
            self.at += 1
            return ["$"]
        self.at = name.end()
        # Braces are expanded first: `$a{b,c}` is `$ab $ac`, so which variable this is cannot be said here. The same
        # holds for a name that goes on in the next line.
        goes_on = text.startswith("\\\n", self.at) or (not quoted and text.startswith(("{", "}", ","), self.at))
        return [Parameter(name[0], quoted, plain=not goes_on)]

    def braced(self, *, quoted: bool) -> Parameter:
        name = _BRACED.match(self.text, self.at + 2)
        if name is None:
            raise Unparsed("has an expansion that cannot be followed")
        self.at = name.end()
        if self.text.startswith("}", self.at):
            self.at += 1
            plain = not name[1].startswith(("#", "!")) or len(name[1]) == 1
            return Parameter(name[1], quoted, plain)
        if re.compile(r"@P\}").match(self.text, self.at):
            raise Unparsed("expands a prompt")
        assigns = self.text.startswith((":=", "=", "::="), self.at)
        return Parameter(name[1], quoted, plain=False, inner=tuple(self.until_brace()), assigns=assigns)

    def until_brace(self) -> list[Part]:
        """Read the rest of `${...}`, past its brace; only the expansions in it matter."""
        parts: list[Part] = []
        depth = 0
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char == "}" and depth == 0:
                self.at += 1
                return parts
            if char in "{}":
                depth += 1 if char == "{" else -1
                self.at += 1
            elif char == "'":
                # Inside double quotes this is no quote; both readings agree where nothing is hidden in it.
                end = text.find("'", self.at + 1)
                if end >= 0 and any(sign in text[self.at : end] for sign in '$`}"'):
                    raise Unparsed("has an expansion that cannot be followed")
                self.at = end + 1 if end >= 0 else self.at + 1
            elif char == '"':
                parts += self.double()
            elif char == "\\":
                self.at += 2
            elif char in "$`":
                parts += self.expansions(quoted=True)
            else:
                self.at += 1
        raise Incomplete("has a ${ without }")

    def arithmetic(self, at: int) -> tuple[Part, ...]:
        """Read from behind `((` up to and past `))`.

        Raises:
            _NotArithmetic: it ends with a single bracket, so the two opening ones were two commands' brackets.
        """
        self.at = at
        parts: list[Part] = []
        depth = 0
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char == "(":
                self.step()
                depth += 1
                self.at += 1
            elif char == ")":
                if depth == 0:
                    if not text.startswith("))", self.at):
                        raise _NotArithmetic
                    self.at += 2
                    return tuple(parts)
                depth -= 1
                self.at += 1
            elif char in "$`":
                parts += self.expansions(quoted=True)
            elif char == '"':
                parts += self.double()
            else:
                self.at += 1
        raise _NotArithmetic

    def ansi(self) -> str:
        found = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if found is None:
            raise Incomplete("has a quote without end")
        self.at = found.end()
        text = _ANSI.sub(_ansi_char, found[1])
        if "\0" in text:
            raise Unparsed("has a zero byte")
        return quote(text) or EMPTY

    # --- blanks, lines, here-documents

    def blanks(self) -> None:
        found = _BLANKS.match(self.text, self.at)
        assert found is not None
        at = self.at
        self.at = found.end()
        # A # begins a comment only at the beginning of a word.
        if "#" in found[0] and at and found[0].startswith("#") and self.text[at - 1] not in " \t\n;&|()<>":
            self.at = at

    def lines(self) -> None:
        while True:
            self.blanks()
            if not self.text.startswith("\n", self.at):
                return
            self.at += 1
            self.documents()

    def documents(self) -> None:
        pending, self.pending = self.pending, []
        for redirect, ending, literal in pending:
            strips = redirect.operator == "<<-"
            start, body = self.at, ""
            while True:
                end = self.text.find("\n", self.at)
                line = self.text[self.at :] if end < 0 else self.text[self.at : end]
                after = len(self.text) if end < 0 else end + 1
                if (line.lstrip("\t") if strips else line) == ending:
                    body = self.text[start : self.at]
                    self.at = after
                    break
                if end < 0:
                    raise Incomplete("has a here-document without end")
                self.at = after
            if strips:
                body = re.sub(r"^\t+", "", body, flags=re.MULTILINE)
            redirect.body = (quote(body),) if literal else self.document(body)

    def document(self, body: str) -> tuple[Part, ...]:
        parser = _CommandParser(body, self.depth)
        parser.steps = self.steps
        parts: list[Part] = []
        while parser.at < len(body):
            if body[parser.at] in "\\`$":
                parser.escaped("$`\\", parts)
            else:
                chunk = _BODY.match(body, parser.at)
                assert chunk is not None
                parts.append(quote(chunk[0]))
                parser.at = chunk.end()
        self.steps = parser.steps
        return tuple(parts)

    def finish(self) -> None:
        if self.pending:
            raise Incomplete("has a here-document without end")

    def reserved(self) -> str:
        self.blanks()
        word = _RESERVED.match(self.text, self.at)
        if word is None:
            return ""
        self.at = word.end()
        return word[1]

    def expect(self, word: str) -> None:
        if self.reserved() != word:
            raise Incomplete(f"has a compound command without {word!r}")


class _NotArithmetic(Exception):
    """Two opening brackets that belong to two commands."""


def _array_begins(parts: list[Part]) -> bool:
    return len(parts) == 1 and isinstance(parts[0], str) and _ASSIGNS.fullmatch(parts[0]) is not None


def _ansi_char(found: re.Match[str]) -> str:
    letter, *numbers, control = found.groups()
    if letter is not None:
        return _ANSI_CHARS.get(letter, letter)
    if control is not None:
        return chr(ord(control) & 0x1F)
    digits, base = next((number, 8 if index == 1 else 16) for index, number in enumerate(numbers) if number is not None)
    code = int(digits, base)
    return chr(code) if code < 0xD800 or 0xE000 <= code < _QUOTED else "\ufffd"
