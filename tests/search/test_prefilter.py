"""The pieces of a chunk hold all of its matches, and the prefilter of them hides none."""

from __future__ import annotations

import random

from blockpty.search.matching import Matcher
from blockpty.search.planner import plan
from blockpty.search.prefilter import Prefilter
from blockpty.search.query import Query
from blockpty.search.records import Records
from blockpty.search.text import COLOURED, MIXED, PIECE, PLAIN, Window
from tests.support.index_contract import everything, home, random_query, records

__all__ = ["home", "records"]


def test_pieces_are_whole_lines_and_together_the_chunk(records: Records) -> None:
    cut = 0
    for _, _, windows in everything(records):
        for window in windows:
            pieces = window.pieces()
            assert b"".join(piece.raw for piece in pieces) == window.raw
            assert "".join(piece.text for piece in pieces) == window.text
            assert [piece.end for piece in pieces[:-1]] == [piece.begin for piece in pieces[1:]]
            assert all(piece.raw.endswith(b"\n") for piece in pieces[:-1])
            cut += len(pieces) > 1
    assert cut


def test_pieces_hold_every_match_and_the_prefilter_hides_none(records: Records) -> None:
    windows = [window for _, _, several in everything(records) for window in several if len(window.raw) >= 2 * PIECE]
    chance, names, found, hidden = random.Random(4), sorted(records.names()), 0, 0
    queries = [random_query(random.Random(number), names) for number in range(6)]
    for _ in range(60):
        line = chance.choice([line for line in chance.choice(windows).text.split("\n") if line])
        begin = chance.randrange(len(line))
        text = line[begin : begin + chance.randrange(3, 12)]
        mode, ignore_case = chance.choice(("substring", "substring", "phrase")), chance.choice((None, None, True))
        queries.append(Query(text if text.strip() else "x", mode, ignore_case))
    for query in queries:
        matcher, prefilter = Matcher(query), Prefilter(plan(query))
        for window in chance.sample(windows, 5):
            there = []
            for piece in window.pieces():
                matches = matcher.find(piece, lambda: 60.0)
                there += [piece.span(*match) for match in matches]
                seen = bool(prefilter.among([piece.raw], [piece.kind]))
                assert prefilter.may_match(piece.raw) or not matches, query
                assert seen or not matches, query
                hidden += not seen
            assert there == [window.span(*match) for match in matcher.find(window, lambda: 60.0)], query
            found += bool(there)
    assert found > 20 and hidden > 20


def test_a_text_that_is_broken_by_what_is_not_shown_is_seen() -> None:
    prefilter = Prefilter(plan(Query("needle in hay")))
    for raw, seen in (
        (b"a needle in hay\n", True), (b"nee\x1b[1mdle in\x1b[m hay", True), (b"needl\x08e in hay", True),
        (b"n\x1b]0;title\x07eedle in hay", True), (b"needle \x1b[1min\n", False), (b"needl\x1b[me\n", False),
        (b"needle i\n", False), (b"\x1b[1mneedle of\x1b[m hay", False), (b"\x1b[1mn eedle in hay\x1b[m", False),
    ):  # fmt: skip
        assert prefilter.may_match(raw) is seen, raw
    long = "x" * 1000
    assert Prefilter(plan(Query(long))).may_match(b"x" * 40 + b"\x1b[m" + b"x" * 960)
    assert not Prefilter(plan(Query(long))).may_match(b"x" * 10)


def test_a_plain_chunk_shows_its_bytes() -> None:
    for raw, plain in (
        (b"a b\tc\r\n", True), (b"a\rb\n", True), (b"\x1b[1ma\n", False), (b"a\x08b\n", False), ("ä\n".encode(), False),
        (b"a\x7fb\n", False),
    ):  # fmt: skip
        assert Window(1, 0, raw, len(raw)).plain is plain
    for raw, kind in (
        (b"a b\r\n", PLAIN), (b"\x1b[1;38:5:3ma\x1b[0;mb\x1b[K\n", COLOURED), (b"a\x1b[2Jb\n", MIXED),
        (b"\x1b[1mb\x07", MIXED), ("\x1b[1mä\n".encode(), MIXED),
        (b"a\x1b", MIXED), (b"\x1b[1", MIXED), (b"\x1b[?1mb", MIXED), (b"", PLAIN),
    ):  # fmt: skip
        assert Window(1, 0, raw, len(raw)).kind == kind, raw


def test_among_pieces_of_all_kinds_those_are_seen_that_show_the_text() -> None:
    chance = random.Random(8)
    seen = hidden = 0
    for _ in range(1500):
        letters = chance.choice(("ab", "ab ", "abmk\t", "aBmKé", "mk"))

        def some(least: int, most: int, letters: str = letters) -> str:
            return "".join(chance.choices(letters, k=chance.randrange(least, most)))

        text = some(1, 20)
        if not text.strip():
            continue
        pieces = []
        for _ in range(chance.randrange(1, 8)):
            lines = []
            for _ in range(chance.randrange(4)):
                begin = text[: chance.randrange(len(text) + 1)] + some(0, 2)
                line = some(0, 6) + 2 * begin + text[chance.randrange(3) :]
                parts = [line[at : at + (step := chance.randrange(1, 9))] for at in range(0, len(line), 5)] or [line]
                colours = chance.choice(("", "", "\x1b[m", "\x1b[31m\x1b[K", "\x1b[1;2m", "\x08", "\x1b]0;t\x07"))
                lines.append(colours.join(parts if step % 2 else [line]) + chance.choice(("\n", "\r\n")))
            pieces.append("".join(lines).rstrip("\n" if chance.random() < 0.2 else "").encode())
        windows = [Window(1, 0, raw, len(raw)) for raw in pieces]
        query = Query(text, "substring", chance.choice((None, True, False)))
        matcher, prefilter = Matcher(query), Prefilter(plan(query))
        there = {at for at, window in enumerate(windows) if matcher.find(window, lambda: 60.0)}
        among = set(prefilter.among(pieces, [window.kind for window in windows]))
        assert there <= among, (query, pieces)
        # What is shown is known of these.
        exact = {at for at, window in enumerate(windows) if window.kind != MIXED}
        assert there & exact == among & exact, (query, pieces)
        seen += len(there & exact)
        hidden += len(exact - there)
    assert seen > 500 and hidden > 500


def test_other_letters_that_are_folded_into_ascii_are_seen() -> None:
    for text, raw, seen in (
        ("kind", "\u212aIND", True), ("sis", "SIſ", True), ("in", "İN", True), ("in", "ıN", True),
        ("in", "é ON", False), ("on", "é ON", True), ("é on", "É ON", True), ("é on", "e ON", False),
    ):  # fmt: skip
        assert Prefilter(plan(Query(text, ignore_case=True))).may_match(raw.encode()) is seen, raw
    # Also when something that is not shown is in the middle of one.
    for text, split in (
        ("camin", b"cam\xc4\x1b[31m\xb1n"), ("kelvin", b"\xe2\x84\x07\xaaelvin"), ("s", b"\xc5\x08\xbf"),
    ):  # fmt: skip
        query, window = Query(text, ignore_case=True), Window(1, 0, split, len(split))
        assert Matcher(query).find(window, lambda: 60.0) and Prefilter(plan(query)).among([split], [window.kind]), split


def test_what_is_redacted_or_stands_for_bytes_is_not_looked_for_in_them() -> None:
    for text in ("a*", "\ufffd"):
        assert Prefilter(plan(Query(text))).may_match(b"another")
    assert not Prefilter(plan(Query("ab"))).may_match(b"another")
