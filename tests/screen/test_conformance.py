"""Third-party cases: screens of xterm (by way of xterm.js) and recordings of alacritty, in text and attributes.

The lists name the cases that differ, each with the reason. A case in a list that agrees fails the test.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from blockpty.screen.pens import BOLD, CONCEAL, FAINT, ITALIC, REVERSE, RGB, STRIKE, Pen
from tests.support.emulators import FIXTURES, MISSING, fed, text

XTERM_DIFFERS = {
    "t0055-EL": "EL 0 at a pending wrap erases nothing, as in tmux, xterm.js and alacritty, unlike xterm",
}
ALACRITTY_DIFFERS = {
    "deccolm_reset": "DECCOLM does nothing unless mode 40 allows it, as in xterm; alacritty clears the screen",
    "saved_cursor_alt": "DECRC does not bring a pending wrap back, as in the xterm of t0060-DECSC; alacritty does",
}


def cases(folder: str, pattern: str) -> list[Any]:
    if FIXTURES is None:
        return [pytest.param(None, marks=pytest.mark.skip(reason=MISSING))]
    found = sorted(path for path in (FIXTURES / folder).glob(pattern))
    assert found, f"no cases in {folder}"
    return [pytest.param(path, id=path.stem if path.is_file() else path.name) for path in found]


def check(name: str, differences: list[str], expected: dict[str, str]) -> None:
    if name in expected:
        assert differences, f"{name} agrees now: take it off the list ({expected[name]})"
        return
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("case", cases("xtermjs-escape-files", "*.in"))
def test_xterm(case: Path) -> None:
    emulator = fed(b"\x1bc\x1b[H" + case.read_bytes().replace(b"\n", b"\r\n"), 80, 25)
    got = text(emulator)
    want = [line.rstrip() for line in case.with_suffix(".text").read_text("utf-8").split("\n")]
    while want and not want[-1]:
        want.pop()
    differences = [f"{y}: {a!r} is not {b!r}" for y, (a, b) in enumerate(zip(got, want, strict=False)) if a != b]
    if len(got) != len(want):
        differences.append(f"{len(got)} rows, not {len(want)}")
    check(case.stem, differences, XTERM_DIFFERS)


_COLORS = {
    f"{bright}{name}": number + 8 * bool(bright)
    for bright in ("", "Bright")
    for number, name in enumerate(("Black", "Red", "Green", "Yellow", "Blue", "Magenta", "Cyan", "White"))
}
_FLAGS = {"BOLD": BOLD, "DIM": FAINT, "ITALIC": ITALIC, "INVERSE": REVERSE, "HIDDEN": CONCEAL, "STRIKEOUT": STRIKE}
_UNDERLINES = {
    "UNDERLINE": 1, "DOUBLE_UNDERLINE": 2, "UNDERCURL": 3, "DOTTED_UNDERLINE": 4, "DASHED_UNDERLINE": 5,
}  # fmt: skip


def color(value: dict[str, Any] | None) -> int | None:
    if value is None:
        return None
    if "Indexed" in value:
        return int(value["Indexed"])
    if "Spec" in value:
        spec = value["Spec"]
        return RGB | spec["r"] << 16 | spec["g"] << 8 | spec["b"]
    return _COLORS.get(value["Named"])


def alacritty_row(stored: list[dict[str, Any]]) -> tuple[str, list[Pen]]:
    shown, pens = "", []
    for cell in stored:
        flags = cell["flags"].split(" | ") if cell["flags"] else []
        extra = cell.get("extra") or {}
        if not any("SPACER" in flag for flag in flags):
            # alacritty keeps a TAB in the first cell that it crossed.
            shown += cell["c"].replace("\t", " ") + "".join(extra.get("zerowidth", []))
        pens.append(
            Pen(
                color(cell["fg"]),
                color(cell["bg"]),
                sum(_FLAGS.get(flag, 0) for flag in flags),
                next((_UNDERLINES[flag] for flag in flags if flag in _UNDERLINES), 0),
                color(extra.get("underline_color")),
            )
        )
    return shown.rstrip(), pens


@pytest.mark.parametrize("case", cases("alacritty-ref", "*/"))
def test_alacritty(case: Path) -> None:
    size = json.loads((case / "size.json").read_text("utf-8"))
    cols, rows = size["columns"], size["screen_lines"]
    stored = json.loads(gzip.decompress((case / "grid.json.gz").read_bytes()))["raw"]["inner"]
    frame = fed((case / "alacritty.recording").read_bytes(), cols, rows).frame()
    differences = []
    for y, line in enumerate(frame.lines):
        want_text, want_pens = alacritty_row(stored[rows - 1 - y]["inner"])
        pens = [run.pen._replace(link=None) for run in line.runs for _ in range(run.width)]
        if line.text != want_text:
            differences.append(f"{y}: {line.text!r} is not {want_text!r}")
        x = next((x for x in range(cols) if pens[x] != want_pens[x]), None)
        if x is not None:
            differences.append(f"{y},{x}: {pens[x]} is not {want_pens[x]}")
    check(case.name, differences, ALACRITTY_DIFFERS)


@pytest.mark.skipif(FIXTURES is None, reason=MISSING)
def test_no_consensus_case_is_on_the_list() -> None:
    """Where alacritty, xterm.js and ghostty agree there is nothing to differ about."""
    assert FIXTURES is not None
    agreement = json.loads((FIXTURES / "alacritty-ref" / "agreement.json").read_text("utf-8"))
    for name in ALACRITTY_DIFFERS:
        assert agreement[name]["consensus"] is False, name


@pytest.mark.skipif(FIXTURES is None, reason=MISSING)
def test_the_lists_name_existing_cases_or_acceptance_ones() -> None:
    assert FIXTURES is not None
    assert ALACRITTY_DIFFERS.keys() <= {path.name for path in (FIXTURES / "alacritty-ref").iterdir()}
    # Of xterm's own cases about half are here; t0055-EL is one of the others.
    given = {path.stem for path in (FIXTURES / "xtermjs-escape-files").glob("*.in")}
    assert XTERM_DIFFERS.keys() - {"t0055-EL"} <= given
