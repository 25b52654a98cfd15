"""Simple commands of a shell text: what would run, as far as that is known before it runs.

Rules of this file: pure, and it never raises. It walks the tree of `shell_syntax`, resolves words with what is
known (the directory, the home, variables and aliases set earlier in the same text), follows `cd`, and asks `launchers`
what each program starts. Every branch counts as taken and every function as called. What is not known becomes
a command with `unknown` set, never nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from blockpty.control import shell_syntax
from blockpty.control.fish_syntax import parse as parse_fish
from blockpty.control.launchers import SHELLS, Started, started
from blockpty.control.shell_syntax import (
    Arithmetic,
    Compound,
    Parameter,
    Part,
    Redirect,
    Simple,
    Substitution,
    Unparsed,
    WordNode,
    quote,
    unquote,
)
from blockpty.control.simple_command import SEVERAL, SOME_NAME, TEMPORARY, UNKNOWN, Redirection, SimpleCommand, Stdin
from blockpty.control.usual_commands import PROGRAM_VARIABLES, prints_settings, resolved

MOST_COMMANDS: Final = 2_000
DEEPEST: Final = 12
_KEPT_CHARS: Final = 4_096
_MOST_BRACES: Final = 64
_MOST_VALUES: Final = 8

_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000f0000-\U000fffff]"
)
_SPLIT: Final = "\x1f"
_RANGE: Final = re.compile(r"\{(-?\d{1,9}|[A-Za-z](?=\.\.[A-Za-z]))\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.(-?\d{1,9}))?\}")
_DEEPEST_BRACES: Final = 24
_PROGRAM: Final = re.compile(r"[\x21-\x7e]+")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_BARE_NAME: Final = re.compile(r"(?<![\w$-])(?<!\$\{)[A-Za-z_]\w*")
_HIDDEN: Final = re.compile(r"^\w+\[[^\]]*(?:\$\(|`)")
_ATTACHED_NAME: Final = re.compile(r"\b(?:printf|read|mapfile|readarray)\b[^\n;|&]*[ \t]-\w*[va]\w")
_DECLARES: Final = frozenset({"export", "declare", "local", "readonly", "typeset"})
_DEFINING: Final = _DECLARES | {
    "alias", "autoload", "enable", "float", "functions", "getopts", "hash", "integer", "let", "mapfile", "print",
    "printf", "private", "read", "readarray", "set", "shopt", "unset", "vared", "zmodload",
}  # fmt: skip
"""Builtins that may give a name another meaning."""
_COMMAND_VARIABLES: Final = frozenset({
    "PROMPT_COMMAND", "PAGER", "MANPAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER",
    "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "LESSOPEN",
    "LESSCLOSE", "BROWSER", "RSYNC_RSH", "CVS_RSH", "SYSTEMD_PAGER", "PSQL_PAGER", "FCEDIT", "TAR_OPTIONS",
    *PROGRAM_VARIABLES,
})  # fmt: skip
_PROMPTS: Final = frozenset({"PS0", "PS1", "PS2", "PS4", "RPROMPT", "PROMPT"})
_STARTUP: Final = frozenset(
    {"BASH_ENV", "ENV", "ZDOTDIR", "LD_PRELOAD", "LD_AUDIT", "PERL5OPT", "RUBYOPT", "PYTHONSTARTUP"}
)
_NAMES: Final = frozenset({"date", "nproc", "whoami", "hostname", "uname", "id", "wc", "arch", "tty"})
_GIT_NAMES: Final = frozenset({"branch", "rev-parse", "symbolic-ref", "describe", "merge-base", "rev-list"})


class Known(NamedTuple):
    """What is known of the place where a text runs."""

    cwd: str | None = None
    home: str | None = None
    shell: str = "bash"


def simple_commands(text: str, known: Known) -> tuple[SimpleCommand, ...]:
    """Return the simple commands of a text, in the order in which they stand."""
    if len(text) <= _KEPT_CHARS:
        return _kept(text, known)
    return _read(text, known)


def _read(text: str, known: Known) -> tuple[SimpleCommand, ...]:
    if _CONTROL.search(text):
        return (SimpleCommand("", source=text[:200], unknown="has control or invisible characters in it"),)
    interpreter = _Interpreter(known)
    try:
        interpreter.run_text(text, known.shell)
    except RecursionError:
        interpreter.unknown("is nested too deeply to be checked", text)
    if interpreter.defines:
        interpreter.found += interpreter.doubts
    return tuple(interpreter.found)


_kept: Final = lru_cache(maxsize=512)(_read)


def forget() -> None:
    """Drop the commands that are kept of earlier texts, so that reading can be measured."""
    _kept.cache_clear()


class _Interpreter:
    """The state of a walk through a text: directory, variables, aliases, input, and the commands found so far."""

    def __init__(self, known: Known) -> None:
        self.home = known.home
        self.shell = known.shell
        self.found: list[SimpleCommand] = []
        # What is unknown only if the text gives a name in it another meaning, and whether it may do so anywhere.
        self.doubts: list[SimpleCommand] = []
        self.defines = False
        self.cwd = known.cwd
        self.stdin: Stdin | None = None
        self.via: tuple[str, ...] = ()
        self.inner: list[SimpleCommand] = []
        self.variables: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.text = ""
        self.counted: tuple[str, Counter[str]] = "", Counter()
        self.conditional = 0
        self.depth = 0

    def unknown(self, reason: str, source: str, *, usual: bool = False) -> None:
        """Add what cannot be known; of a usual command only if the text turns out to define something."""
        found = SimpleCommand("", (), (), self.via, self.cwd, self.stdin, tuple(self.inner), source[:200], reason)
        if usual:
            self.doubts.append(found)
        else:
            self.add(found)

    def add(self, command: SimpleCommand) -> None:
        if len(self.found) < MOST_COMMANDS:
            self.found.append(command)
        elif len(self.found) == MOST_COMMANDS:
            self.found.append(SimpleCommand("", unknown="has too many commands to be checked"))

    # --- texts and compound commands

    def run_text(self, text: str, shell: str) -> None:
        """Read a text of its own, with the state as it is."""
        if self.depth >= DEEPEST or len(self.found) > MOST_COMMANDS:
            self.unknown("is nested too deeply to be checked", text)
            return
        kept = self.text
        self.text = text
        self.depth += 1
        try:
            tree = parse_fish(text) if shell == "fish" else shell_syntax.parse(text)
        except Unparsed as error:
            self.unknown(str(error), text)
        except RecursionError:
            self.unknown("is nested too deeply to be checked", text)
        else:
            self.sequence(tree)
        self.depth -= 1
        self.text = kept

    def sequence(self, tree: shell_syntax.Sequence) -> None:
        for _, pipeline in tree.pipelines:
            self.pipeline(pipeline)

    def pipeline(self, pipeline: shell_syntax.Pipeline) -> None:
        if len(pipeline.commands) == 1:
            self.command(pipeline.commands[0])
            return
        cwd, stdin = self.cwd, self.stdin
        self.conditional += 1
        for number, command in enumerate(pipeline.commands):
            begin = len(self.found)
            self.command(command)
            before = (*self.stdin.commands, *self.found[begin:]) if number and self.stdin else tuple(self.found[begin:])
            self.stdin = Stdin(_printed(self.found[begin:]) if number == 0 else None, before)
            self.cwd = cwd
        self.conditional -= 1
        self.stdin = stdin

    def command(self, command: Simple | Compound) -> None:
        if isinstance(command, Simple):
            self.simple(command)
            return
        cwd, stdin = self.cwd, self.stdin
        self.redirects(command.redirects, compound=True)
        words = [word for node in command.words for word in self.expand(node)]
        if command.kind in ("[[", "((") and any(_HIDDEN.search(word) for word in words):
            self.unknown("hides a command in a subscript", "")
        self.defines |= bool(command.name)
        if command.name in PROGRAM_VARIABLES:
            self.unknown(f"sets {command.name} to what is known only at run time", "")
        if command.kind == "{":
            self.sequence(command.bodies[0])
            self.stdin = stdin
            return
        self.conditional += 1
        if command.kind == "for":
            self.loop(command, words)
        else:
            for body in command.bodies:
                self.sequence(body)
        self.conditional -= 1
        self.stdin = stdin
        if command.kind in ("(", "function"):
            self.cwd = cwd
        elif self.cwd != cwd:
            self.cwd = None

    def loop(self, command: Compound, words: list[str]) -> None:
        """Run the body once for each value, if the values are known and few."""
        name = command.name
        values = words if 0 < len(words) <= _MOST_VALUES and not any(UNKNOWN in word for word in words) else []
        if not values or not self.assigned_once(name):
            self.variables.pop(name, None)
            self.sequence(command.bodies[0])
            return
        for value in values:
            self.variables[name] = value
            self.sequence(command.bodies[0])
        self.variables.pop(name, None)

    # --- simple commands

    def simple(self, command: Simple) -> None:
        stdin, inner = self.stdin, self.inner
        self.inner = []
        redirections = self.redirects(command.redirects)
        # Behind a launcher the variables and programs may be others.
        usual = bool(command.words) and not self.via and self.shell != "fish"
        words = [word for node in command.words for word in self.expand(node)]
        self.assign(command, lasting=not words)
        found = resolved(command.words, self.shell) if usual else None
        if found is not None and UNKNOWN in words[found[0]]:
            words[found[0]] = found[1]
            self.unknown("runs a program known only at run time", command.source, usual=True)
        if command.words and self.alias(command, words):
            pass
        elif words:
            self.run(tuple(words), redirections, command.source, usual=usual and prints_settings(command.words))
        elif command.words:
            self.unknown("runs a program known only at run time", command.source)
        elif redirections:
            self.add(
                SimpleCommand("", (), redirections, self.via, self.cwd, self.stdin, tuple(self.inner), command.source)
            )
        self.stdin = stdin
        inner += self.inner
        self.inner = inner

    def alias(self, command: Simple, words: list[str]) -> bool:
        """Run what an alias set earlier in the text stands for."""
        if not self.aliases or command.words[0].quoted or words[0] not in self.aliases:
            return False
        meaning = self.aliases.pop(words[0])
        rest = " ".join(_written(word) for word in words[1:])
        self.run_text(f"{meaning} {rest}", "bash")
        self.aliases[words[0]] = meaning
        return True

    def run(
        self, words: tuple[str, ...], redirections: tuple[Redirection, ...], source: str, *, usual: bool = False
    ) -> None:
        """Add a command, and what it starts. `usual`: what it evaluates is made for that (`prints_settings`)."""
        program, reason = _program(words[0])
        arguments = words[1:]
        if program in ("builtin", "command", "exec", "env", "busybox") and not arguments:
            reason = ""
        self.add(SimpleCommand(
            program, arguments, redirections, self.via, self.cwd, self.stdin, tuple(self.inner), source, reason,
        ))  # fmt: skip
        if reason:
            return
        if program in _DEFINING and arguments:
            self.define(program, arguments, source)
        if program in _BUILTINS:
            self.builtin(program, arguments, source)
        elif program in ("env", "sudo", "doas"):
            for argument in arguments:
                found = _ASSIGNMENT.match(argument)
                if found is not None:
                    self.set(found[1], found[2], lasting=False)
        elif program in _SUBSCRIPTS and any(_HIDDEN.search(argument) for argument in arguments):
            self.unknown("hides a command in a subscript", source)
        elif program == "exec" and not arguments and self.stdin is not None:
            self.unknown("has the shell itself read another input", source)
        if self.depth >= DEEPEST:
            if started(program, arguments, self.stdin):
                self.unknown("is nested too deeply to be checked", source)
            return
        for one in started(program, arguments, self.stdin):
            if usual and one.unknown:
                self.unknown(one.unknown, source, usual=True)
            else:
                self.follow(program, one, source)

    def follow(self, program: str, one: Started, source: str) -> None:
        """Add what a launcher starts."""
        if one.unknown:
            self.unknown(one.unknown, source)
            return
        kept = self.via, self.cwd, self.home, self.depth, self.conditional
        self.via = (*self.via, program)
        self.depth += 1
        if one.remote:
            self.cwd = self.home = None
        if one.text is not None:
            outer, self.variables = self.variables, self.variables if program in ("eval", "trap") else {}
            if program in ("eval", "trap"):
                self.conditional += 1
            self.run_text(one.text, one.shell)
            self.variables = outer
            if program == "eval":
                kept = kept[0], self.cwd, *kept[2:]
        elif one.words:
            self.run(one.words, (), source)
        self.via, self.cwd, self.home, self.depth, self.conditional = kept

    def define(self, program: str, arguments: tuple[str, ...], source: str) -> None:
        """Take note that a builtin may give a name another meaning, and whether it is one that is run as a program."""
        self.defines = True
        if program == "set" and not arguments[0].startswith(("-A", "+A")):
            return
        names = [re.sub(r"^-\w*v(?=\w)|\[.*", "", argument, flags=re.DOTALL) for argument in arguments]
        if program in _DECLARES:
            # Their assignments are read in `builtin`; here it is `declare -n x=EDITOR`.
            refers = any(re.match(r"-\w*n", one) for one in arguments)
            names = [name.partition("=")[2] for name in names] if refers else []
        for name in PROGRAM_VARIABLES.intersection(names):
            self.unknown(f"sets {name} to what is known only at run time", source)

    def builtin(self, program: str, arguments: tuple[str, ...], source: str) -> None:
        """Follow what a builtin changes in the shell."""
        if program in ("cd", "pushd"):
            places = [argument for argument in arguments if argument == "-" or not argument.startswith("-")]
            if program == "pushd" and not places:
                self.cwd = None
            else:
                self.cwd = self.moved(places[0] if places else "~" if self.home is None else self.home)
        elif program == "popd":
            self.cwd = None
        elif program == "abbr":
            self.follow("abbr", Started(text=" ".join([one for one in arguments if one[:1] != "-"][1:])), source)
        elif program == "alias":
            if len(arguments) > 1 and "=" not in arguments[0]:
                self.follow("alias", Started(text=" ".join(arguments[1:])), source)  # as fish also writes it
            for argument in arguments:
                name, sign, meaning = argument.partition("=")
                if name.startswith("-"):
                    self.unknown("sets an alias that works anywhere in a line", source)
                elif sign:
                    self.aliases[name] = meaning
                    self.conditional += 1
                    self.run_text(meaning, "bash")
                    self.conditional -= 1
        elif program in _DECLARES:
            for argument in arguments:
                if _HIDDEN.search(argument):
                    self.unknown("hides a command in a subscript", source)
                found = _ASSIGNMENT.match(argument)
                if found is not None:
                    self.set(found[1], found[2], lasting=True)
        elif any(argument.startswith(_RUNNING_OPTIONS[program]) for argument in arguments):
            self.unknown(f"has {program} run something else", source)

    def moved(self, place: str) -> str | None:
        if UNKNOWN in place or place == "-" or (not place.startswith("/") and self.cwd is None):
            return None
        return posixpath.normpath(posixpath.join(self.cwd or "/", place))

    # --- variables

    def assign(self, command: Simple, *, lasting: bool) -> None:
        for name, values in command.assignments:
            if name.endswith("[]"):
                self.defines = True
                for value in values:
                    self.expand(value)
                self.variables.pop(name[:-2], None)
                if name[:-2] in PROGRAM_VARIABLES:
                    self.unknown(f"sets {name[:-2]} to several words", command.source)
            else:
                self.set(name, unquote(self.raw(values[0])).replace(_SPLIT, " "), lasting=lasting)

    def set(self, name: str, value: str, *, lasting: bool) -> None:
        """Take note of an assignment, and read the value of a variable that holds a command."""
        self.defines = True
        if name in _COMMAND_VARIABLES and value and not (name == "SHELL" and value.rpartition("/")[2] in SHELLS):
            self.conditional += 1
            # What an editor is started with may be any file.
            self.run_text(f'{value} "$@"' if name in PROGRAM_VARIABLES or name.endswith("EDITOR") else value, "bash")
            self.conditional -= 1
        elif name in _PROMPTS and ("$(" in value or "`" in value):
            self.unknown("puts a command into the prompt", f"{name}={value}")
        elif (name in _STARTUP or name.startswith("GIT_CONFIG_")) and value:
            self.unknown(f"sets {name}, which changes what programs run", f"{name}={value}")
        if _HIDDEN.search(value):
            self.unknown("hides a command in a subscript", f"{name}={value}")
        if lasting:
            if not self.conditional and not _is_open(value) and self.assigned_once(name):
                self.variables[name] = value
            else:
                self.variables.pop(name, None)

    def assigned_once(self, name: str) -> bool:
        """Whether the name stands only once in the text but for its uses, so that only this can set it."""
        return self.mentions(name) == 1

    def mentions(self, name: str) -> int:
        """Return how often a name stands in the text other than behind a dollar sign."""
        if self.counted[0] is not self.text:
            self.counted = self.text, Counter(_BARE_NAME.findall(self.text))
            if _ATTACHED_NAME.search(self.text):
                self.counted[1].update(list(self.counted[1]))
        return self.counted[1][name]

    def value(self, name: str) -> str | None:
        found = self.variables.get(name)
        if found is not None:
            return found
        known = {"HOME": self.home, "PWD": self.cwd}.get(name)
        return known if known is not None and not self.mentions(name) else None

    # --- words

    def expand(self, node: WordNode) -> list[str]:
        """Return the words that a word becomes, with quoting removed."""
        parts = node.parts
        if len(parts) == 1 and isinstance(parts[0], str) and not node.quoted:
            raw = parts[0]
            if "{" not in raw and raw[:1] != "~":
                return [raw]
        else:
            raw = self.raw(node)
        if raw[:1] in ("~", "{") and "~" in raw and len(parts) > 1 and not str(parts[0]).startswith("~/"):
            # Which part of it is a user's name depends on where its pieces came from.
            return [SEVERAL]
        found = []
        for word in _braces(raw):
            if _SPLIT not in word:
                found += [unquote(self.tilde(word))] if word else []
            else:
                found += [unquote(one) for one in word.split(_SPLIT) if one]
        return found

    def raw(self, node: WordNode) -> str:
        return "".join([part if isinstance(part, str) else self.part(part) for part in node.parts])

    def part(self, part: Part) -> str:
        """Return what an expansion gives: its value, marked as quoted where it is, or a mark for what is not known."""
        if isinstance(part, str):
            return part
        if isinstance(part, Arithmetic):
            for inner in part.inner:
                self.part(inner)
            return SOME_NAME
        if isinstance(part, Parameter):
            for inner in part.inner:
                self.part(inner)
            if part.assigns:
                self.defines = True
                if part.name in PROGRAM_VARIABLES:
                    self.unknown(f"sets {part.name} to what is known only at run time", "")
            value = self.value(part.name) if part.plain else None
            if value is None:
                if part.name in ("#", "?", "$", "!") or part.name.startswith("#"):
                    return SOME_NAME
                return UNKNOWN if part.quoted and part.name != "@" else SEVERAL
            if not part.quoted and self.mentions("IFS"):
                return SEVERAL
            return quote(value) if part.quoted else _split(value)
        return self.substitution(part)

    def substitution(self, part: Substitution) -> str:
        begin, cwd, stdin = len(self.found), self.cwd, self.stdin
        self.conditional += 1
        if part.kind == ">":
            self.stdin = Stdin()
        self.sequence(part.body)
        self.conditional -= 1
        self.cwd, self.stdin = cwd, stdin
        inner = self.found[begin:]
        self.inner += inner
        if part.kind != "$":
            return "/dev/fd/" + UNKNOWN
        text = _printed(inner)
        if text is not None:
            text = text.rstrip("\n")
            return quote(text) if part.quoted else _split(text)
        if len(inner) == 1 and (
            inner[0].program in _NAMES or (inner[0].program == "git" and set(inner[0].arguments[:3]) & _GIT_NAMES)
        ):
            return SOME_NAME
        if len(inner) == 1 and inner[0].program == "mktemp":
            return TEMPORARY if not any("/" in one or UNKNOWN in one for one in inner[0].arguments) else SOME_NAME
        if len(inner) == 1 and inner[0].program == "pwd" and self.cwd is not None:
            return quote(self.cwd)
        return UNKNOWN if part.quoted else SEVERAL

    def tilde(self, word: str) -> str:
        if not word.startswith("~"):
            return word
        name, sign, rest = word.partition("/")
        place = self.home if name == "~" else self.cwd if name == "~+" else None
        return (UNKNOWN if place is None else place) + sign + rest

    def redirects(self, redirects: Iterable[Redirect], *, compound: bool = False) -> tuple[Redirection, ...]:
        """Resolve redirections, and take note of what they make the standard input."""
        found = []
        for one in redirects:
            if one.operator in ("<<", "<<-"):
                self.stdin = Stdin("".join(unquote(self.part(part)) for part in one.body))
                continue
            target = " ".join(self.expand(one.target))
            if one.operator == "<<<":
                self.stdin = Stdin(target + "\n")
            elif one.operator == "<" and one.descriptor in ("", "0"):
                self.stdin = Stdin(None, tuple(self.inner))
            elif one.operator == "<&" and one.descriptor in ("", "0"):
                self.stdin = Stdin()
            found.append(Redirection(one.operator, target))
        if compound and found:
            self.add(SimpleCommand("", (), tuple(found), self.via, self.cwd, None, (), "", ""))
        return tuple(found)


_SUBSCRIPTS: Final = frozenset({"let", "read", "unset", "test", "[", "printf", "wait", "getopts"})
"""Builtins that evaluate the subscripts of names which they are given."""
_RUNNING_OPTIONS: Final = {
    "compgen": ("-C", "-F", "-W"),
    "bind": ("-x", "-f"), "complete": ("-C", "-F"), "enable": ("-f",), "fc": ("-s", "-e"), "hash": ("-p",),
    "mapfile": ("-C",), "readarray": ("-C",),
}  # fmt: skip
"""Builtins with options that run something, or change what a name runs."""
_BUILTINS: Final = frozenset({"cd", "pushd", "popd", "alias", "abbr", *_DECLARES, *_RUNNING_OPTIONS})


def _program(word: str) -> tuple[str, str]:
    """Return the base name of a program, and why it cannot be known."""
    base = word.rpartition("/")[2]
    if UNKNOWN in base:
        return "", "runs a program known only at run time"
    if base in ("[", ":", "."):
        return base, ""
    if _PROGRAM.fullmatch(base) is None:
        return "", "has a program name with unusual characters"
    if word.startswith(("=", "!", "^")) or any(char in base for char in "*?[{"):
        return "", "names a program by a pattern"
    return base.lower(), ""


def _split(value: str) -> str:
    """Mark where an unquoted value becomes several words; its braces and tildes mean nothing, its patterns do."""
    return re.sub(r"[ \t\n]+", _SPLIT, re.sub(r"[{},~]", lambda found: quote(found[0]), value))


def _is_open(value: str) -> bool:
    """Whether a value is not known, or not even what kind of word it is."""
    return UNKNOWN in value.replace(SOME_NAME, "")


def _printed(commands: Sequence[SimpleCommand]) -> str | None:
    """Return what a single `echo` or `printf` of literal text prints."""
    if len(commands) != 1 or commands[0].redirections or commands[0].program not in ("echo", "printf"):
        return None
    arguments = commands[0].arguments
    if any(UNKNOWN in argument for argument in arguments):
        return None
    if commands[0].program == "printf":
        if len(arguments) != 1:
            if len(arguments) == 2 and arguments[0] in ("%s", "%s\\n"):
                return arguments[1] + ("\n" if arguments[0] != "%s" else "")
            return None
        text = arguments[0]
        return None if "%" in text or re.search(r"\\[^nt]", text) else text.replace("\\n", "\n").replace("\\t", "\t")
    escapes = False
    while arguments and re.fullmatch(r"-[neE]+", arguments[0]):
        escapes |= "e" in arguments[0]
        arguments = arguments[1:]
    text = " ".join(arguments)
    if "\\" in text:
        # Some shells' echo reads escapes without -e.
        if re.search(r"\\[^nt]", text) or not escapes:
            return None
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    return text + "\n"


def _braces(word: str) -> list[str]:
    """Return the words that brace expansion makes, the first ones if there are very many."""
    if "{" not in word or "}" not in word:
        return [word]
    words, whole = _expanded(word, 0)
    return words if whole else [*words, SEVERAL]


def _expanded(word: str, depth: int) -> tuple[list[str], bool]:
    """Expand the first braces of a word, what is in them, and what follows; False if it was too much."""
    for begin in (place for place, char in enumerate(word) if char == "{") if depth < _DEEPEST_BRACES else ():
        choices, end = _choices(word, begin)
        if not choices:
            continue
        found: list[str] = []
        rest, whole = _expanded(word[end:], depth + 1)
        for choice in choices:
            inner, complete = _expanded(choice, depth + 1)
            whole &= complete
            found += [word[:begin] + one + other for one in inner for other in rest]
            if len(found) > _MOST_BRACES:
                return found[:_MOST_BRACES], False
        return found, whole
    return [word], depth < _DEEPEST_BRACES or "{" not in word


def _choices(word: str, begin: int) -> tuple[list[str], int]:
    """Return what stands between a brace and its partner, and where that ends; nothing if the brace is a plain one."""
    interval = _RANGE.match(word, begin)
    if interval is not None:
        return _range(*interval.groups()), interval.end()
    level, start = 0, begin + 1
    choices: list[str] = []
    for place in range(begin + 1, len(word)):
        char = word[place]
        if char == "{":
            level += 1
        elif char == "}":
            if level == 0:
                return ([*choices, word[start:place]] if choices else []), place + 1
            level -= 1
        elif char == "," and level == 0:
            choices.append(word[start:place])
            start = place + 1
    return [], begin


def _range(first: str, last: str, step: str | None) -> list[str]:
    letters = not first.lstrip("-").isdigit()
    low, high = (ord(first), ord(last)) if letters else (int(first), int(last))
    stride = abs(int(step)) if step and int(step) else 1
    if abs(high - low) // stride >= _MOST_BRACES:
        return [SOME_NAME]
    numbers = range(low, high + 1, stride) if low <= high else range(low, high - 1, -stride)
    if letters:
        return [quote(chr(number)) for number in numbers]
    padded = any(re.match(r"-?0\d", one) for one in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [str(number).zfill(width) for number in numbers]


def _written(word: str) -> str:
    """Return a word quoted for the shell."""
    return "'" + word.replace("'", "'\\''") + "'"
