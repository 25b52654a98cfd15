"""Output in pieces: what a terminal gets is safe however it is cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from blockpty.surfaces.cli.live import SafeText
from blockpty.surfaces.cli.render import sanitize


@given(st.text(alphabet=st.sampled_from("\x1b[]0;:31mJ?\x07\x9b\n\t x\u202e")), st.data())
def test_safe_text_is_the_same_however_it_is_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    for colour in (True, False):
        safe = SafeText(colour=colour)
        pieces = [safe.feed(text[begin:end]) for begin, end in pairwise([0, *cuts, len(text)])]
        assert "".join(pieces) + safe.finish() == sanitize(text, colour=colour)


def test_a_long_beginning_of_a_colour_is_not_waited_for() -> None:
    safe = SafeText(colour=True)
    assert safe.feed("\x1b[" + "1;" * 50) == "^[[" + "1;" * 50
