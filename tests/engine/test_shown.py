"""What a wait has looked at last: kept with its places, and no more of it than is shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blockpty.engine.shown import KEPT_BYTES, ShownOutput


def test_pieces_stay_in_their_places() -> None:
    shown = ShownOutput()
    for offset, data in ((10, b"one "), (14, b""), (20, b"two "), (24, b"three")):
        shown.add(offset, data)
    assert shown.whole
    assert shown.before() == b"one two three"
    assert [shown.before(end) for end in (10, 12, 20, 22, 24, 99)] == [
        b"", b"on", b"one ", b"one tw", b"one two ", b"one two three",
    ]  # fmt: skip


@given(st.lists(st.integers(1, 3 * KEPT_BYTES), min_size=1, max_size=8))
def test_the_end_is_kept_whatever_the_pieces(sizes: list[int]) -> None:
    stream = b"".join(bytes([number % 251]) * size for number, size in enumerate(sizes))
    shown, at = ShownOutput(), 0
    for size in sizes:
        shown.add(at, stream[at : at + size])
        at += size
    kept = shown.before()
    assert stream.endswith(kept)
    assert min(len(stream), KEPT_BYTES) <= len(kept) < 2 * KEPT_BYTES
    assert shown.whole == (kept == stream)
