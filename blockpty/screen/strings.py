"""Control strings (OSC, XTWINOPS) that a screen keeps: titles, directory, prompt zones, hyperlinks.

Rules of this file: every text that is kept is bounded and free of control characters. Colours and the clipboard are not
the stream's to change; such requests are ignored.
"""

from __future__ import annotations

import re
from typing import Final

from blockpty.screen.pens import Link
from blockpty.screen.state import ScreenState

_TITLE: Final = 1024
_URI: Final = 2083
_TITLES: Final = 10
# Marks of our hooks and of other shell integrations, which draw nothing; the engine reads them.
_MARKS: Final = ("7717", "633", "3008")
# Colours, which queries.py tells.
_ASKED: Final = ("4", "10", "11", "12")
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


def obey(s: ScreenState, text: str) -> None:
    """Take note of an OSC, given without its introducer and end."""
    code, _, rest = text.partition(";")
    rest = _CONTROLS.sub("", rest)
    if code in ("0", "1", "2", ""):
        if code != "1":
            s.title = rest[:_TITLE]
        if code in ("0", "1", ""):
            s.icon_title = rest[:_TITLE]
    elif code == "7":
        s.cwd = rest[:_TITLE]
    elif code == "8":
        _hyperlink(s, rest)
    elif code == "133" and rest[:1] in "ABCDPN":
        s.zone = rest[:1]
    elif code not in _MARKS and not (code in _ASKED and rest.endswith("?")):
        s.pass_over(f"OSC {code}" if code.isdecimal() and len(code) < 8 else "OSC")


def _hyperlink(s: ScreenState, text: str) -> None:
    parameters, _, uri = text.partition(";")
    link = None
    if uri and len(uri) <= _URI:
        found = [value[3:] for value in parameters.split(":") if value.startswith("id=")]
        link = Link(uri, found[0][:256] if found else "")
    s.brush = s.brushes.of(s.brush.pen._replace(link=link))


def window(s: ScreenState, p: tuple[int, ...]) -> None:
    """XTWINOPS: only the stack of titles; size and place of the window are not the program's to change."""
    if p[0] == 22:
        s.titles = [*s.titles, s.title][-_TITLES:]
    elif p[0] == 23 and s.titles:
        s.title = s.titles.pop()
