"""The nonce never leaves: covered as a whole, in pieces, in any chunks, whatever it looks like."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockpty.spool.journal import OutputFile
from blockpty.spool.masking import Mask
from blockpty.testing import every_split

NONCE = "Rk9yX3Rlc3RzX29ubHkhIQ"
# The first one begins with the character it ends with, as one random nonce in 64 does; the others are worse.
BORDERED = ("Qk9yX3Rlc3RzX29ubHkhIQ", "abcabcabcabcabcabcabca", "A" * 22)
PERIODS = [NONCE, *BORDERED]


def chunks(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = [0, *(cut for cut in cuts if 0 < cut < len(data)), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


def through(mask: Mask, pieces: list[bytes]) -> bytes:
    """Pass the raw bytes of a block through its `.out` file."""
    output = OutputFile("blocks/1_0.out")
    return b"".join([output.take(piece, mask) for piece in pieces] + [output.take(b"", mask, last=True)])


def test_the_length_stays() -> None:
    mask = Mask([NONCE])
    assert mask.hide(b"<" + NONCE.encode() + b">") == b"<" + b"*" * 22 + b">"
    assert mask.hide(NONCE.encode()[:-1]) == NONCE.encode()[:-1]
    assert Mask().hide(b"anything") == b"anything"


def test_every_nonce_of_a_conversation_counts() -> None:
    mask = Mask(["", NONCE])
    assert mask.nonces == [NONCE]
    mask.add("")
    mask.add(NONCE)
    mask.add(BORDERED[0])
    assert mask.nonces == [NONCE, BORDERED[0]]
    assert mask.hide(f"{NONCE}{BORDERED[0]}{NONCE}".encode()) == b"*" * 66
    assert Mask(mask.nonces).nonces == mask.nonces


@pytest.mark.parametrize("nonce", PERIODS)
@pytest.mark.parametrize(
    "around", [b"%s", b"a%sb", b"%s%s", b"n=%s;", b"\r\n%s\r\n", b"%s\r", b"\r%s\r\n\r", b"-%s-%s-%s"]
)
def test_every_split(nonce: str, around: bytes) -> None:
    data = around.replace(b"%s", nonce.encode())
    mask = Mask([nonce])
    whole = mask.hide(data).replace(b"\r\n", b"\n")
    assert nonce.encode() not in whole
    for cuts in every_split(data, pairs=50):
        assert through(mask, chunks(data, cuts)) == whole


@settings(derandomize=True, deadline=None, database=None)
@given(
    nonce=st.sampled_from(PERIODS),
    parts=st.lists(st.one_of(st.just("nonce"), st.just("half"), st.binary(max_size=6), st.just(b"\r\n")), max_size=8),
    cuts=st.lists(st.integers(1, 200), max_size=8),
)
def test_any_text_any_chunks(nonce: str, parts: list[str | bytes], cuts: list[int]) -> None:
    known = {"nonce": nonce.encode(), "half": nonce.encode()[:11]}
    data = b"".join(part if isinstance(part, bytes) else known[part] for part in parts)
    mask = Mask([nonce])
    shown = through(mask, chunks(data, sorted(set(cuts))))
    assert nonce.encode() not in shown
    assert shown == mask.hide(data).replace(b"\r\n", b"\n")


def test_what_may_still_become_a_nonce_is_held() -> None:
    mask = Mask([NONCE])
    for length in range(1, 22):
        assert mask.partial(b"text " + NONCE.encode()[:length]) == length
    assert mask.partial(b"text") == 0
    assert mask.partial(b"") == 0


def test_a_whole_nonce_is_not_held_as_the_beginning_of_another() -> None:
    for nonce in PERIODS:
        output = OutputFile("blocks/1_0.out")
        assert b"*" * 22 in output.take(nonce.encode() + b".", Mask([nonce]))
