"""Conditions of a wait, as data, and their wire form.

A program writes `PROMPT`, `EOF`, `INPUT`, `Regex(...)`, `Idle(...)`, `Screen(...)` or `Changed(...)`, or the wire form
of one; type checkers know both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict

from msgspec import Struct

from blockpty.errors import BadCondition

MAX_PATTERN: Final = 4096
MAX_TEXT: Final = 64 * 1024


class WaitCondition(Struct, frozen=True):
    """Base of the conditions: what a list of several kinds holds."""


class Text(WaitCondition, frozen=True):
    """The text appears, byte for byte; with `ignore_case` in capitals or small letters (of ASCII)."""

    text: str
    ignore_case: bool = False


class Regex(WaitCondition, frozen=True):
    """The regular expression matches settled text; `^` and `$` are line borders."""

    regex: str
    ignore_case: bool = False


class Prompt(WaitCondition, frozen=True):
    """The shell is ready for the next command."""


class Eof(WaitCondition, frozen=True):
    """The interactive session is over, or the shell has ended."""


class WantsInput(WaitCondition, frozen=True):
    """The program in front waits for input from the terminal: a line, a key or a password."""


class Idle(WaitCondition, frozen=True):
    """Nothing was written and nothing typed for `ms` milliseconds."""

    ms: int


class Screen(WaitCondition, frozen=True):
    """The regular expression matches what the terminal shows; `^` and `$` are borders of its rows."""

    regex: str
    ignore_case: bool = False


class Changed(WaitCondition, frozen=True):
    """The terminal shows something else than what a result of `screen` called by this hash."""

    hash: str


class TextDict(TypedDict):
    """The wire form of `Text` with a flag; a plain string is one without."""

    text: str
    ignore_case: NotRequired[bool]


class RegexDict(TypedDict):
    """The wire form of `Regex`."""

    regex: str
    ignore_case: NotRequired[bool]


class TokenDict(TypedDict):
    """The wire form of `PROMPT`, `EOF` and `INPUT`."""

    token: Literal["PROMPT", "EOF", "INPUT"]


class IdleDict(TypedDict):
    """The wire form of `Idle`."""

    idle_ms: int


class ScreenDict(TypedDict):
    """The wire form of `Screen`."""

    screen: str
    ignore_case: NotRequired[bool]


class ChangedDict(TypedDict):
    """The wire form of `Changed`."""

    changed: str


Condition = Text | Regex | Prompt | Eof | WantsInput | Idle | Screen | Changed
OneMatch = str | WaitCondition | TextDict | RegexDict | TokenDict | IdleDict | ScreenDict | ChangedDict
Match = OneMatch | Sequence[OneMatch]

PROMPT: Final = Prompt()
EOF: Final = Eof()
INPUT: Final = WantsInput()

_SHAPES: Final = (
    'a string, {"regex": "..."}, {"token": "PROMPT"}, {"token": "EOF"}, {"token": "INPUT"}, {"idle_ms": n}, '
    '{"screen": "..."}, {"changed": "hash"}, {"text": "...", "ignore_case": true}, or a list of these'
)
_KEYS: Final = ("regex", "token", "idle_ms", "screen", "changed", "text")
TOKENS: Final[Mapping[Any, Condition]] = {"PROMPT": PROMPT, "EOF": EOF, "INPUT": INPUT}
_HASH: Final = re.compile(r"[0-9a-f]{0,16}(?:-[0-9a-f]{0,16}){0,2}")


def parse_conditions(match: Match) -> tuple[Condition, ...]:
    """Return the alternatives of a wait, in order; raises BadCondition with a hint when it is not one."""
    if isinstance(match, Sequence) and not isinstance(match, (str, bytes)):
        if not match:
            raise BadCondition("the list of conditions is empty", hint=f"give {_SHAPES}")
        return tuple(_parse_one(item) for item in match)
    return (_parse_one(match),)


def condition_to_wire(condition: Condition) -> Any:
    """Return the wire form of a condition."""
    if isinstance(condition, Text):
        return {"text": condition.text, "ignore_case": True} if condition.ignore_case else condition.text
    if isinstance(condition, Regex):
        return {"regex": condition.regex, **_flags(condition)}
    if isinstance(condition, Idle):
        return {"idle_ms": condition.ms}
    if isinstance(condition, Screen):
        return {"screen": condition.regex, **_flags(condition)}
    if isinstance(condition, Changed):
        return {"changed": condition.hash}
    return {"token": next(token for token, known in TOKENS.items() if condition == known)}


def match_to_wire(match: Any) -> Any:
    """Return the wire form of what a wait was given; what is none already stays, to be refused where it is checked."""
    if isinstance(match, (list, tuple)):
        return [match_to_wire(item) for item in match]
    return condition_to_wire(match) if isinstance(match, Condition) else match


def _flags(condition: Regex | Screen) -> dict[str, bool]:
    return {"ignore_case": True} if condition.ignore_case else {}


def _parse_one(item: Any) -> Condition:
    if isinstance(item, (Text, Regex, Prompt, Eof, WantsInput, Idle, Screen, Changed)):
        return item
    if isinstance(item, str):
        return _text(item)
    ignore_case = False
    if isinstance(item, Mapping) and isinstance(item.get("ignore_case"), bool):
        ignore_case = item["ignore_case"]
        # To the others, which have no letters, it makes no difference.
        item = {key: value for key, value in item.items() if key != "ignore_case"}
    if isinstance(item, Mapping) and len(item) == 1:
        ((key, value),) = item.items()
        if key == "text" and isinstance(value, str):
            return _text(value, ignore_case)
        if key == "regex" and isinstance(value, str) and 0 < len(value) <= MAX_PATTERN:
            return Regex(value, ignore_case)
        if key == "token" and isinstance(value, str):
            if value in TOKENS:
                return TOKENS[value]
            raise BadCondition(f"no token is called {value[:40]!r}", hint=_meant(value.upper(), TOKENS))
        if key == "idle_ms" and isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 3_600_000:
            return Idle(value)
        if key == "screen" and isinstance(value, str) and 0 < len(value) <= MAX_PATTERN:
            return Screen(value, ignore_case)
        if key == "changed" and isinstance(value, str) and value.strip("-") and _HASH.fullmatch(value):
            return Changed(value)
        if key not in _KEYS:
            raise BadCondition(f"no condition is called {str(key)[:40]!r}", hint=_meant(str(key), _KEYS))
    raise BadCondition(f"not a condition: {str(item)[:100]!r}", hint=f"give {_SHAPES}")


def _meant(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the known words, and the one that is near to a misspelt one."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}"


def _text(text: str, ignore_case: bool = False) -> Text:
    if not text or len(text) > MAX_TEXT:
        raise BadCondition(
            f"the text to wait for must have 1 to {MAX_TEXT} characters", hint='for a prompt use {"token": "PROMPT"}'
        )
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise BadCondition("the text to wait for holds half a character (a surrogate)") from None
    return Text(text, ignore_case)
