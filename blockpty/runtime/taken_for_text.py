"""Words that were taken for text and were meant otherwise: tokens, conditions and keys.

Rules of this file: nothing is taken in another way than it was given. The caller gets a hint on how it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from blockpty.engine.keys import KEY_NAMES
from blockpty.model.conditions import TOKENS

_OBJECTS: Final = frozenset({"text", "regex", "token", "idle_ms", "screen", "changed"})
_ALIASES: Final = ("RETURN", "ESCAPE", "BACKSPACE", "PAGEUP", "PAGEDOWN", "DELETE", "INSERT", "CR")
_NAMES: Final = "|".join(re.escape(name) for name in sorted({*KEY_NAMES, *_ALIASES}, key=len, reverse=True))
_CONTROL: Final = rf"(?:C|CTRL|M|ALT|S|SHIFT)[-+](?:[^\s\]>]|{_NAMES})"
# A key alone, in the notations of other programs and of ours. Compiled on first use, because that is slow.
_KEY: Final = rf"(?i:\^[@-_a-z?]|{_CONTROL}|<(?:{_CONTROL}|{_NAMES})>|\[(?:{_CONTROL}|{_NAMES})\])"
_KEY_AT_END: Final = rf"(?i:\[(?:{_CONTROL}|{_NAMES})\]$|<(?:{_CONTROL}|{_NAMES})>$)"
_ESCAPE_AT_END: Final = r"(?<!\\)\\[rn]$"
# Names of our own notation in that of others, for some of which a name alone is a key.
_BARE: Final = "Enter|Esc|Escape|Return|Tab|Backspace|Delete|Up|Down|Left|Right|PageUp|PageDown|F[0-9]{1,2}"
_FOREIGN: Final = rf"(?i:{_CONTROL}|<(?:{_CONTROL}|{_NAMES})>)|{_BARE}"


def in_match(*given: Any) -> str | None:
    """Return how what was given as a text to wait for is written if it was meant otherwise; None where it is text."""
    for text in _texts(given):
        if text in TOKENS:
            return f'{text} was taken as a text; the token is written {{"token": "{text}"}}'
        if not text.lstrip().startswith("{"):
            continue
        try:
            found = json.loads(text)
        except ValueError:
            return f"a match that begins with {{ was taken as a text, because it is not valid JSON: {text[:60]!r}"
        if isinstance(found, Mapping) and found.keys() & _OBJECTS:
            return f"a condition that is given as a string was taken as a text; give the object itself: {text[:60]}"
    return None


def in_typed(text: str) -> str | None:
    """Return how the key would be pressed whose name a caller typed as a text; None where it is text."""
    stripped = text.strip()
    if found := re.fullmatch(_KEY, stripped) or re.search(_KEY_AT_END, stripped):
        return f"{found.group()} was typed as text; send_keys {_ours(found.group())!r} presses the key"
    if found := re.search(_ESCAPE_AT_END, text):
        return f"{found.group()} was typed as two characters; send_line types a text and Enter"
    return None


def in_keys(keys: str) -> str | None:
    """Return how a key is written that a caller of `send_keys` wrote as other programs do; None where it is text."""
    if found := re.fullmatch(_FOREIGN, keys.strip()):
        return f"{found.group()} was typed as text; the key is written {_ours(found.group())}"
    return None


def _ours(name: str) -> str:
    """Return a key in our notation."""
    bare = name.strip("<>[]")
    if re.fullmatch(r"\^.", name):
        return name
    bare = re.sub(r"^CR$", "ENTER", bare.replace("+", "-"), flags=re.IGNORECASE)
    if control := re.fullmatch(r"(?:C|CTRL)-([a-z])", bare, re.IGNORECASE):
        return f"^{control[1].upper()}"
    return f"[{bare}]"


def _texts(given: Sequence[Any]) -> Iterator[str]:
    for one in given:
        if isinstance(one, str):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from _texts(one)
