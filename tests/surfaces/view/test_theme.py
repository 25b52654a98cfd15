"""The colours of the terminal program can be read: on every ground that text stands on, in both themes."""

from __future__ import annotations

import pytest

from blockpty.surfaces.view.theme import NAMES, themes

# Of text that is read, by WCAG 2.2, AA.
LEAST = 4.5


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", NAMES)
def test_text_can_be_read(name: str) -> None:
    colours = NAMES[name]
    for ground in (colours.background, colours.surface, colours.raised, colours.sunken, colours.selected):
        for text in (colours.text, colours.muted, colours.accent, colours.ok, colours.fail, colours.run):
            assert contrast(text, ground) >= LEAST, (text, ground)
    for text in (colours.agent, colours.user):
        assert contrast(text, colours.surface) >= LEAST, text
    assert contrast(colours.wait, colours.wait_ground) >= LEAST
    assert len(colours.ansi) == 16
    for text in colours.ansi:
        assert contrast(text, colours.surface) >= LEAST, text


def test_textual_knows_them() -> None:
    made = {theme.name: theme for theme in themes()}
    assert made.keys() == NAMES.keys()
    assert [made[name].dark for name in NAMES] == [True, False]
    assert all(made[name].background == colours.background for name, colours in NAMES.items())
