"""Conditions of a wait, as data, and their wire form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from blockpty.errors import BadCondition

MAX_PATTERN: Final = 4096
MAX_TEXT: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Text:
    """The text appears, byte for byte; with `ignore_case` in capitals or small letters (of ASCII)."""

    text: str
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """The regular expression matches settled text; `^` and `$` are line borders."""

    regex: str
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """The shell is ready for the next command."""


@dataclass(frozen=True, slots=True)
class Eof:
    """The interactive session is over, or the shell has ended."""


@dataclass(frozen=True, slots=True)
class WantsInput:
    """The program in front waits for input from the terminal: a line, a key or a password."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing was written and nothing typed for `ms` milliseconds."""

    ms: int


@dataclass(frozen=True, slots=True)
class Screen:
    """The regular expression matches what the terminal shows; `^` and `$` are borders of its rows."""

    regex: str
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """The terminal shows something else than what a result of `screen` called by this hash."""

    hash: str


Condition = Text | Pattern | Prompt | Eof | WantsInput | Idle | Screen | Changed
Match = str | Mapping[str, Any] | Sequence[Any] | Condition

TOKENS: Final[Mapping[str, type[Prompt | Eof | WantsInput]]] = {"PROMPT": Prompt, "EOF": Eof, "INPUT": WantsInput}
_SHAPES: Final = (
    'a string, {"regex": "..."}, {"token": "PROMPT"}, {"token": "EOF"}, {"token": "INPUT"}, {"idle_ms": n}, '
    '{"screen": "..."}, {"changed": "hash"}, {"text": "...", "ignore_case": true}, or a list of these'
)
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
    if isinstance(condition, Pattern):
        return {"regex": condition.regex, **_flags(condition)}
    if isinstance(condition, Idle):
        return {"idle_ms": condition.ms}
    if isinstance(condition, Screen):
        return {"screen": condition.regex, **_flags(condition)}
    if isinstance(condition, Changed):
        return {"changed": condition.hash}
    return {"token": next(token for token, kind in TOKENS.items() if isinstance(condition, kind))}


def _flags(condition: Pattern | Screen) -> dict[str, bool]:
    return {"ignore_case": True} if condition.ignore_case else {}


def _parse_one(item: Any) -> Condition:
    if isinstance(item, (Text, Pattern, Prompt, Eof, WantsInput, Idle, Screen, Changed)):
        return item
    if isinstance(item, str):
        return _text(item)
    ignore_case = False
    if isinstance(item, Mapping) and isinstance(item.get("ignore_case"), bool):
        ignore_case = item["ignore_case"]
        item = {key: value for key, value in item.items() if key != "ignore_case"}
        if not item.keys() & {"text", "regex", "screen"}:
            raise BadCondition("ignore_case is for a text, a regex or a screen", hint=f"give {_SHAPES}")
    if isinstance(item, Mapping) and len(item) == 1:
        ((key, value),) = item.items()
        if key == "text" and isinstance(value, str):
            return _text(value, ignore_case)
        if key == "regex" and isinstance(value, str) and 0 < len(value) <= MAX_PATTERN:
            return Pattern(value, ignore_case)
        if key == "token" and isinstance(value, str) and value in TOKENS:
            return TOKENS[value]()
        if key == "idle_ms" and isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 3_600_000:
            return Idle(value)
        if key == "screen" and isinstance(value, str) and 0 < len(value) <= MAX_PATTERN:
            return Screen(value, ignore_case)
        if key == "changed" and isinstance(value, str) and value.strip("-") and _HASH.fullmatch(value):
            return Changed(value)
    raise BadCondition(f"not a condition: {str(item)[:100]!r}", hint=f"give {_SHAPES}")


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
