"""Colours of the terminal program, light and dark: those of the page. Data only."""

from __future__ import annotations

from typing import Final, NamedTuple

from textual.theme import Theme


class Colours(NamedTuple):
    """The colours of a theme; `ansi` has the sixteen of a terminal as text on `surface`."""

    background: str
    surface: str
    raised: str
    sunken: str
    term: str
    text: str
    muted: str
    line: str
    line2: str
    accent: str
    ok: str
    fail: str
    run: str
    wait: str
    wait_ground: str
    wait_line: str
    agent: str
    user: str
    selected: str
    ansi: tuple[str, ...]


DARK: Final = Colours(
    background="#0f1115", surface="#15181e", raised="#1b1f27", sunken="#0b0d10", term="#101318", text="#e6e8ec",
    muted="#9aa1ad", line="#232831", line2="#343b47", accent="#8fb0ff", ok="#6fcf97", fail="#ff8a80", run="#7db4ff",
    wait="#f2c14e", wait_ground="#2a2310", wait_line="#6b5520", agent="#c4a7ff", user="#5fd0d6", selected="#1b2130",
    ansi=(
        "#9aa1ad", "#ff8a80", "#7fd8a0", "#f2c14e", "#8fb0ff", "#d9a3ff", "#5fd0d6", "#c9ced8",
        "#9aa1ad", "#ffaaa2", "#a0e6ba", "#ffd981", "#b3c9ff", "#e6c3ff", "#93e4e8", "#ffffff",
    ),
)  # fmt: skip
LIGHT: Final = Colours(
    background="#f6f5f2", surface="#ffffff", raised="#ffffff", sunken="#efeeea", term="#fdfcfa", text="#1b1d22",
    muted="#5b606b", line="#e2dfd8", line2="#cfcbc2", accent="#2f5bd7", ok="#1d7a46", fail="#b3261e", run="#2563c4",
    wait="#8a5a00", wait_ground="#fff6e0", wait_line="#e3c37a", agent="#6b3fc9", user="#00707a", selected="#eef2fd",
    ansi=(
        "#1b1d22", "#b3261e", "#1d7a46", "#8a5a00", "#2f5bd7", "#8b2fa8", "#00707a", "#5b606b",
        "#666b76", "#b3261e", "#1d7a46", "#8a5a00", "#2f5bd7", "#8b2fa8", "#00707a", "#3a3e47",
    ),
)  # fmt: skip
NAMES: Final = {"blockpty-dark": DARK, "blockpty-light": LIGHT}


def themes() -> list[Theme]:
    """Return the themes as Textual has them."""
    return [
        Theme(
            name=name, dark=name == "blockpty-dark", primary=colours.accent, secondary=colours.agent,
            accent=colours.accent, warning=colours.wait, error=colours.fail, success=colours.ok,
            foreground=colours.text, background=colours.background, surface=colours.surface, panel=colours.raised,
            variables={
                **{key.replace("_", "-"): value for key, value in colours._asdict().items() if isinstance(value, str)},
                "block-cursor-background": colours.selected, "block-cursor-foreground": colours.text,
                "block-cursor-text-style": "none", "block-cursor-blurred-background": colours.selected,
                "block-cursor-blurred-foreground": colours.text,
            },
        )
        for name, colours in NAMES.items()
    ]  # fmt: skip
