"""Long lines: every index finds what is in the whole text, which is known without the cutting of search.

The other tests compare an index with a scan, and both look at the same chunks.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pytest

from blockpty.cluster.database import Database
from blockpty.cluster.hosts import Hosts
from blockpty.cluster.postgres_index import PostgresIndex
from blockpty.engine.views import View
from blockpty.search.index import Index
from blockpty.search.query import Filters, Query
from blockpty.search.records import Records
from blockpty.search.scan import Scan
from blockpty.search.sqlite import SqliteIndex
from blockpty.search.text import CHUNK, cut
from blockpty.testing import FakePty, ManualClock
from tests.support.corpus import save
from tests.support.index_contract import fill, pages_of
from tests.support.postgres_servers import Servers
from tests.support.profile import LONG, some_of

QUERIES = 300 if LONG else 40
_WORDS = ("Straße", "naïve", "東京都", "λόγος", "🚀", "error", "x86_64", "İstanbul", "данные", "e\u0301", "a b", "a.b")


class Output(NamedTuple):
    """The output of a command: what was printed, its text, and the place in `raw` of each character of the text."""

    raw: bytes
    text: str
    places: list[int]


def made_of(pieces: list[tuple[str, str]]) -> Output:
    """Return an output made of texts, each after a sequence that is not shown."""
    raw, text, places = bytearray(), "", list[int]()
    for sequence, shown in pieces:
        raw += sequence.encode()
        places += accumulate((len(character.encode()) for character in shown[:-1]), initial=len(raw)) if shown else ()
        raw += shown.encode()
        text += shown
    return Output(bytes(raw), text, places)


def json_line(chance: random.Random, records: int, ascii_only: bool) -> str:
    made = [{"id": number, "name": f"{chance.choice(_WORDS)}-{chance.randrange(10**6)}"} for number in range(records)]
    return json.dumps(made, separators=(",", ":"), ensure_ascii=ascii_only)


def unbroken(chance: random.Random, length: int) -> str:
    """Return characters of one to four bytes, without anything between words."""
    return "".join(chance.choices("abzßéλд東京都🚀𝔘", k=length))


def outputs() -> list[Output]:
    chance = random.Random(5)
    made = [
        [("", json_line(chance, 6000, True))],
        [("", json_line(chance, 2000, False)), ("", "\nStraße begins the next line\n")],
        [("", unbroken(chance, 30_000)), ("", "\n")],
        [("", "x" * (CHUNK + 1200) + "needle" + "y" * 3000 + "\n")],
        [("", "\r".join(f"{at:5}% {unbroken(chance, 20)}" for at in range(900))), ("", "\n")],
        [("", "10%\r" + json_line(chance, 1500, False)), ("", "\n")],
        [(chance.choice(("", "\x1b[1;31m", "\x1b]8;;http://h,x\x1b\\")), chance.choice(_WORDS)) for _ in range(6000)],
    ]
    # Lines that end at and around the places where a chunk that could not end before would end.
    for length in (*range(CHUNK - 3, CHUNK + 4), CHUNK + 1000, CHUNK + 4094, CHUNK + 4095, CHUNK + 4096, CHUNK + 5000):
        made.append([("", f"{unbroken(chance, 100)}{'q' * length}"[:length] + "\nStraße begins\nab\n")])
    return [made_of(pieces) for pieces in made]


class Printed(NamedTuple):
    """A record of these outputs, and for each the offset at which it lies in the stream."""

    records: Records
    outputs: list[Output]
    begins: list[int]

    def truth(self, text: str) -> set[int]:
        """Return the stream offsets at which a text begins."""
        found = set()
        for output, begin in zip(self.outputs, self.begins, strict=True):
            at = output.text.find(text)
            while at >= 0:
                found.add(begin + output.places[at])
                at = output.text.find(text, at + 1)
        return found

    def found(self, index: Index, query: Query) -> list[int]:
        """Return the stream offsets at which a query is found."""
        return [match.key.offset for match in pages_of(self.records, index, query)]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Printed]:
    home = tmp_path_factory.mktemp("home")
    pty, made = FakePty(ManualClock()), outputs()
    pty.spawn()
    pty.prompt()
    pty.silence(icanon=False, echo=False, foreground="shell")
    for number, output in enumerate(made):
        pty.run(f":{number}", output.raw, 0)
    save(home, "c1", pty)
    records = Records(home)
    stream = records.record("c1").read(0, 1 << 30)
    begins, at = [], 0
    for output in made:
        at = stream.index(output.raw, at)
        begins.append(at)
        at += len(output.raw)
    yield Printed(records, made, begins)
    records.close()


def needles(printed: Printed) -> list[str]:
    """Return texts that are there, of one line, not too often, and that cannot overlap themselves."""
    chance, found = random.Random(11), list[str]()
    weights = [len(output.text) for output in printed.outputs]
    while len(found) < QUERIES:
        text = chance.choices(printed.outputs, weights)[0].text
        begin = chance.randrange(len(text))
        if chance.random() < 0.5:
            # About the places where lines are cut.
            begin = min(len(text) - 1, max(0, chance.randrange(1, 5) * CHUNK + chance.randrange(-40, 40)))
        lines = text[begin : begin + chance.randrange(2, 25)].splitlines()
        needle = lines[0] if lines else ""
        overlaps = any(needle.startswith(needle[at:]) for at in range(1, len(needle)))
        if needle.strip() and not overlaps and len(printed.truth(needle)) < 500:
            found.append(needle)
    return found


def check(printed: Printed, index: Index) -> None:
    """Check that texts are found exactly where they are."""
    for needle in needles(printed):
        found = printed.found(index, Query(needle, ignore_case=False, limit=1000, filters=Filters(part="output")))
        assert len(found) == len(set(found)) and set(found) == printed.truth(needle), needle
    # Parts of characters would be found as this.
    assert not printed.found(index, Query("\ufffd", limit=1000))
    lines = {line for output in printed.outputs for line in output.text.split("\n")}
    assert "ab" in lines and not any(len(line) == 1 for line in lines)
    assert not printed.found(index, Query("^.$", "regex", limit=1000))


@pytest.mark.timeout(600)
def test_a_scan_finds_exactly_what_is_there(printed: Printed) -> None:
    check(printed, Scan())


@pytest.mark.timeout(600)
def test_sqlite_finds_exactly_what_is_there(printed: Printed, tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "index")
    try:
        fill(index, printed.records)
        check(printed, index)
    finally:
        index.close()


@pytest.mark.timeout(600)
def test_postgresql_finds_exactly_what_is_there(printed: Printed, postgres_servers: Servers) -> None:
    with postgres_servers.databases() as databases:
        shards = [Database(url) for url in databases.shards]
        index = PostgresIndex(Database(databases.url), Hosts("home-1", "host", "", seconds=60.0), shards)
        try:
            fill(index, printed.records)
            check(printed, index)
        finally:
            index.close()


def test_no_record_of_a_long_json_line_is_missed(printed: Printed) -> None:
    """Every record that is near a cut of a line of JSON is found, the first word of the next line too."""
    output, begin = printed.outputs[1], printed.begins[1]
    near = [at for at in range(len(output.text)) if output.text.startswith('{"id"', at)]
    cuts = range(CHUNK, len(output.raw), CHUNK)
    near = [at for at in near if min(abs(output.places[at] - place) for place in cuts) < 1500]
    assert len(near) > 100
    for at in some_of(near, 9):
        text = output.text[at : output.text.index("}", at) + 1]
        assert printed.found(Scan(), Query(text, limit=10, ignore_case=False)) == [begin + output.places[at]]


@pytest.mark.parametrize("number", range(19))
def test_chunks_are_small_and_end_outside_words_characters_and_sequences(number: int) -> None:
    output = outputs()[number]
    at, words = 0, 0
    while at < len(output.raw):
        data = output.raw[at : at + CHUNK + 4096]
        own, seen = cut(data, at + len(data) == len(output.raw))
        assert 0 < own <= CHUNK and own <= seen <= len(data)
        data[:own].decode()
        assert len(View("text", 0).feed(data[:own]).raw) == own
        end = data[:own].decode()[-1] + data[own:].decode(errors="ignore")[:1]
        words += len(end) == 2 and end.isalnum()
        at += own
    if number in (0, 1, 5):
        assert not words
