"""The lists of a part: what they hold is what the texts hold, packed, joined and asked again."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from blockpty.search import sqlite_lists
from blockpty.search.sqlite_lists import holding, keys_in, keys_of, numbering, pieces_in, rows_of, rows_of_all

Rows = list[tuple[int, bytes]]


def some_texts(chance: random.Random, count: int) -> list[bytes]:
    """Return texts of which some four bytes are in nearly all, some in one, and some in pieces far from each other."""
    alphabet = ["a", "b", "ab", "bab", " ", "\n", "é", "\x01"]
    texts = []
    for number in range(count):
        text = "".join(chance.choices(alphabet, k=chance.randrange(40)))
        texts.append(f"\n{text}{'needle' if number % 300 == 7 else ''}\n".encode())
    return texts


def expected(texts: Sequence[bytes]) -> list[int]:
    """Return the keys of texts, worked out byte by byte."""
    return sorted(
        {
            int.from_bytes(text[at : at + 4], "big") << 32 | number
            for number, text in enumerate(texts)
            for at in range(len(text) - 3)
            if b"\n" not in text[at + 1 : at + 3]
        }
    )


def unpacked(rows: Rows, count: int) -> list[int]:
    """Return the keys in rows."""
    found: list[int] = keys_in(rows, np.arange(count)).tolist() if rows else []
    for first, packed in rows:
        alone = keys_in([(first, packed)], np.arange(count))
        assert pieces_in(first, packed, 0, 1 << 32).tolist() == (alone & np.uint64(0xFFFFFFFF)).tolist()
    return found


def asker(rows: Rows) -> Callable[[int, int], Rows]:
    """Return what gives the rows of some lists: those that begin among them, and the one before."""

    def ask(low: int, high: int) -> Rows:
        before = max((at for at, (first, _) in enumerate(rows) if first <= low), default=0)
        return [(first, packed) for first, packed in rows[before:] if first <= high]

    return ask


@pytest.fixture(params=[16, 2048])
def row_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_lists, "_ROW", request.param)
    monkeypatch.setattr(sqlite_lists, "_MERGED", 3)
    monkeypatch.setattr(sqlite_lists, "_AT_ONCE", 100)


@pytest.mark.usefixtures("row_size")
def test_what_is_packed_is_what_the_texts_hold() -> None:
    for count in (0, 1, 5, 900):
        texts = some_texts(random.Random(count), count)
        rows = list(rows_of(keys_of(texts)))
        assert unpacked(rows, count) == expected(texts)
        assert [first for first, _ in rows] == sorted({first for first, _ in rows})


@pytest.mark.usefixtures("row_size")
def test_parts_that_are_joined_hold_what_each_of_them_held() -> None:
    chance = random.Random(2)
    texts = some_texts(chance, 900)
    order = list(range(900))
    chance.shuffle(order)
    # Three parts whose pieces lie among each other in the new one.
    parts = [order[:300], order[300:310], order[310:]]
    joined = rows_of_all(
        [
            (numbering([(old, new, 1) for old, new in enumerate(part)]), rows_of(keys_of([texts[at] for at in part])))
            for part in parts
        ]
    )
    assert unpacked(list(joined), 900) == expected(texts)


@pytest.mark.usefixtures("row_size")
def test_pieces_that_hold_a_text_are_named_and_few_others() -> None:
    chance = random.Random(3)
    texts = some_texts(chance, 900)
    ask = asker(list(rows_of(keys_of(texts))))
    for _ in range(50):
        text = "".join(chance.choices(("a", "b", " ", "é"), k=chance.randrange(4, 9))).encode()
        grams = [int.from_bytes(text[at : at + 4], "big") for at in range(len(text) - 3)]
        found = holding([[[(gram, gram)] for gram in grams]], 900, ask).tolist()
        true = [number for number, held in enumerate(texts) if text in held]
        assert found == sorted(found) and set(found) >= set(true)
        assert len(grams) > 1 or found == true
    three = int.from_bytes(b"nee", "big") << 8
    assert holding([[[(three, three | 255)]]], 900, ask).tolist() == [7, 307, 607]
    assert holding([[[(0, 0)]], [[(three, three | 255)]]], 900, ask).tolist() == [7, 307, 607]
    assert holding([[[(0, 0)], [(three, three | 255)]]], 900, ask).tolist() == []


def test_a_damaged_row_is_refused() -> None:
    (first, packed), *_ = rows_of(keys_of(some_texts(random.Random(4), 50)))
    for spoilt in (b"", packed[:-5], packed[:20] + bytes(10) + packed[30:], b"x" * 100):
        with pytest.raises(ValueError, match=r".+"):
            pieces_in(first, spoilt, 0, 1 << 32)
        with pytest.raises(ValueError, match=r".+"):
            keys_in([(first, packed), (first, spoilt)], np.arange(50))
    with pytest.raises(ValueError, match="not there"):
        keys_in([(first, packed)], np.arange(10))
    with pytest.raises(ValueError, match="not there"):
        holding([[[(first, 1 << 32)]]], 10, lambda low, high: [(first, packed)])
