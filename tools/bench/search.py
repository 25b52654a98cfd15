"""Search of text in all that was shown: the index in SQLite, beside ripgrep over the streams and DuckDB over JSONL."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from msgspec.structs import replace

from bench.report import Row, Run, median, percentile, skipped
from blockpty import Engine
from blockpty.engine.machine import Machine
from blockpty.engine.views import transform
from blockpty.model.block import Block
from blockpty.search.executor import find
from blockpty.search.index import IndexEntry, IndexWatermark
from blockpty.search.ingest import batches
from blockpty.search.overview import Asked
from blockpty.search.query import Filters, Query
from blockpty.search.records import Records
from blockpty.search.sqlite import SqliteIndex
from blockpty.testing import FakePty, ManualClock

# However busy the machine is: what is measured must be whole.
PATIENCE_MS = 60_000
# Of one conversation; a home of 1 GB has 200 of them.
_CONVERSATION = 5_000_000
_TEXT = (
    "error warning connection refused timeout retry fetch branch commit merge assert passed failed module import "
    "return yield config server request response token cache build target linking object archive parser buffer "
    "worker queue thread signal handler socket stream cursor block shell prompt reader writer table column schema "
    "index value"
)
_WORDS = _TEXT.split()
NOTE = (
    "search: newest 100 matches, from the call to the result with its lines read and verified in the record; texts are"
    " cut at random out of the corpus (3 to 24 characters), so some are in almost every chunk and some in one. The"
    " corpus is made: logs, listings, diffs, compilers, test runs, JSON, progress bars, a third of it coloured"
)
NOTE_CPU = "of the processor: the time it gave us, which on a busy machine says more of us than the time on the wall"
NOTE_COLD = "search cold: index and records are dropped from the page cache, and files opened anew, before each query"
NOTE_RG = "ripgrep: all matches of the same text in all streams, counted; it knows no newest, and no colours in between"
NOTE_DUCKDB = "DuckDB: newest 100 blocks that hold the text, from one JSONL file with a line for each block"
NOTE_LAG = "search lag: from the end of a block to its being in the index, in an engine that does nothing else"


def measure(run: Run) -> list[Row]:
    """Make a corpus, index it, and ask."""
    size = run.megabytes * 1_000_000 if run.megabytes else run.count(200_000_000, 2_000_000)
    home, jsonl, texts = corpus(run, size)
    index = SqliteIndex(run.place / "index")
    records = Records(home)
    try:
        rows = _building(run, index, records, home)
        rows += _asking(run, index, records, home, texts)
    finally:
        index.close()
        records.close()
    rows += _ripgrep(run, home, texts)
    rows += _duckdb(run, jsonl, texts)
    rows += _overview(run)
    rows.append(asyncio.run(_lag(run)))
    return rows


# The corpus


def corpus(run: Run, size: int) -> tuple[Path, Path, list[str]]:
    """Return a home of so many bytes, its blocks as JSONL, and texts to look for; it is made where none was kept."""
    if run.kept is None:
        place = run.place
    else:
        place = run.kept / f"{size}"
        place.mkdir(parents=True, exist_ok=True)
    home, jsonl, asked = place / "home", place / "blocks.jsonl", place / "texts.json"
    if not asked.exists():  # written last
        shutil.rmtree(home, ignore_errors=True)
        asked.write_bytes(orjson.dumps(make_home(home, size, jsonl)))
    return home, jsonl, orjson.loads(asked.read_bytes())


def make_home(home: Path, size: int, jsonl: Path) -> list[str]:
    """Write conversations of so many bytes in all, and their blocks as JSONL; return texts to look for."""
    chance, clock = random.Random(5), ManualClock()
    texts: list[str] = []
    with jsonl.open("wb") as lines:
        for number in range(max(1, round(size / _CONVERSATION))):
            pty = FakePty(clock)
            pty.recording.stream = bytearray()  # type: ignore[assignment]  # grows in place
            pty.spawn()
            pty.prompt()
            while len(pty.recording.stream) < min(size, _CONVERSATION):
                clock.advance(chance.randrange(1, 5000))
                output = _output(chance, int(chance.lognormvariate(6.5, 2.2)) + 1)
                pty.run(chance.choice(("make", "git log", "pytest -q", "ls -lR", "kubectl logs web")), output)
            _save(home / "conversations" / f"c{number}", pty, lines)
            wanted = 1 + 200 * _CONVERSATION // max(size, _CONVERSATION)
            texts += _texts(chance, pty.recording.stream, wanted)
    return texts


def _save(directory: Path, pty: FakePty, lines: Any) -> None:
    machine, recording = Machine(), pty.recording
    blocks = []
    for step in recording.steps():
        events, _ = machine.apply(step) if not isinstance(step, (bytes, bytearray)) else machine.feed(bytes(step))
        blocks += [event.fields["block"] for event in events if event.type == "agent_block_end"]
    recording.stream = bytes(recording.stream)
    recording.save(directory)
    (directory / "blocks.jsonl").write_bytes(b"".join(orjson.dumps(block) + b"\n" for block in blocks))
    for block in blocks:
        begin, end = block["span"]
        text = transform("text", recording.stream[begin:end]).decode("utf-8", "replace")
        line = {"ts": block["ts_begin"], "conversation": directory.name, "seq": block["seq"], "output": text}
        lines.write(orjson.dumps(line) + b"\n")


def _output(chance: random.Random, size: int) -> bytes:
    kind = chance.randrange(6)
    colour = chance.random() < 0.33
    lines: list[str] = []
    written = 0
    while written < size:
        words = chance.choices(_WORDS, k=6)
        number = chance.randrange(1 << 30)
        one, two, three, four, *rest = words
        line = (
            f"2026-03-{number % 28 + 1:02} {number % 24:02}:{number % 60:02} {one.upper()} {two}[{number}]: {rest[0]}",
            f"-rw-r--r-- 1 root root {number % 99999:>8} Mar {number % 28 + 1:>2} {one}_{number:x}.{two[:2]}",
            f"{'+-  '[number % 4]}    {one}.{two}({three}, {number}) = {four}",
            f"src/{one}/{two}.c:{number % 4000}:{number % 80}: warning: unused {three} '{four}_{number:x}'",
            f'{{"level": "{one}", "id": "{number:08x}-{two}", "took": {number % 1000}, "msg": "{three} {four}"}}',
            f"tests/{one}/test_{two}.py::test_{three}_{number % 997} {'PASSED' if number % 9 else 'FAILED'}",
        )[kind]
        if colour:
            line = line.replace(two, f"\x1b[3{number % 7}m{two}\x1b[0m", 1)
        lines.append(line)
        written += len(line) + 2
    return ("\r\n".join(lines) + "\r\n").encode()


def _texts(chance: random.Random, stream: bytes, count: int) -> list[str]:
    texts = []
    while len(texts) < count:
        at, length = chance.randrange(len(stream)), chance.randrange(3, 25)
        piece = stream[at : at + length]
        if piece.isascii() and piece.decode().isprintable() and len(piece) == length:
            texts.append(piece.decode())
    return texts


# What is measured


def _building(run: Run, index: SqliteIndex, records: Records, home: Path) -> list[Row]:
    size = sum(path.stat().st_size for path in home.glob("conversations/*/stream/*"))
    begin, processor = time.perf_counter(), time.process_time()
    for batch in batches(records, index.positions().of, index.batch_bytes):
        index.add(batch.entries, batch.positions)
    taken, processor = time.perf_counter() - begin, time.process_time() - processor
    index.close()  # what is in the journals of SQLite goes into its files
    kept = sum(path.stat().st_size for path in (run.place / "index").iterdir() if path.suffix == ".sqlite")
    share = kept / size * 100
    return [
        Row("search", f"indexing {size / 1e6:.0f} MB", size / taken / 1e6, "MB/s", aim=">= 5 MB/s",
            met=size / taken >= 5e6, note=NOTE),
        Row("search", f"indexing {size / 1e6:.0f} MB, of the processor", size / processor / 1e6, "MB/s", note=NOTE_CPU),
        Row("search", "size of the index", share, "% of the text", aim="<= 35 %", met=share <= 35, note=NOTE),
    ]  # fmt: skip


def _asking(run: Run, index: SqliteIndex, records: Records, home: Path, texts: Sequence[str]) -> list[Row]:
    of_processor: list[float] = []

    def times(queries: Sequence[Query]) -> list[float]:
        found = []
        of_processor.clear()
        for query in [replace(query, timeout_ms=PATIENCE_MS) for query in queries]:
            begin, processor = time.perf_counter(), time.thread_time()
            result = find(records, index, query)
            found.append((time.perf_counter() - begin) * 1000)
            of_processor.append((time.thread_time() - processor) * 1000)
            assert not result.partial or query.mode == "regex", query
        return found

    rows = []
    substrings = [Query(text) for text in texts[: run.count(200, 20)]]
    times(substrings)
    warm = times(substrings)
    rows.append(
        Row("search", "newest 100, substring, warm, p95", percentile(warm, 95), "ms", aim="< 20 ms",
            met=percentile(warm, 95) < 20, low=min(warm), high=max(warm), note=NOTE)
    )  # fmt: skip
    for what, value in (("median", median(of_processor)), ("p95", percentile(of_processor, 95))):
        rows.append(
            Row("search", f"the same, of the processor, {what}", value, "ms", low=min(of_processor),
                high=max(of_processor), note=NOTE_CPU)
        )  # fmt: skip
    chance = random.Random(6)
    kinds: dict[str, list[Query]] = {
        "two words": [Query(" ".join(chance.sample(_WORDS, 2)), "words") for _ in range(40)],
        "regex with a literal": [Query(rf"{word}_[0-9a-f]+\b", "regex") for word in _WORDS],
        "substring, failed blocks of one conversation": [
            Query(text, filters=Filters(conversation_id="c0", failed=False)) for text in texts[:40]
        ],
    }
    for what, queries in kinds.items():
        took = times(queries[: run.count(40, 5)])
        rows.append(
            Row("search", f"newest 100, {what}, p95", percentile(took, 95), "ms", low=min(took), high=max(took),
                note=NOTE)
        )  # fmt: skip
    cold = []
    for query in substrings[: run.count(40, 3)]:
        index.close()
        records.close()
        _forget([*home.rglob("*"), *(run.place / "index").iterdir()])
        cold += times([query])
    rows.append(
        Row("search", "newest 100, substring, cold, p95", percentile(cold, 95), "ms", aim="< 100 ms",
            met=percentile(cold, 95) < 100, low=min(cold), high=max(cold), note=NOTE_COLD)
    )  # fmt: skip
    return rows


def _forget(paths: Sequence[Path]) -> None:
    """Have files out of the page cache, as far as the system does that."""
    if hasattr(os, "posix_fadvise"):
        for path in paths:
            if path.is_file():
                with path.open("rb") as file:
                    os.fdatasync(file.fileno())
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _beside(what: str, texts: Sequence[str], ask: Callable[[str], None], note: str) -> Row:
    took = []
    for text in texts:
        begin = time.perf_counter()
        ask(text)
        took.append((time.perf_counter() - begin) * 1000)
    return Row("search", what, percentile(took, 95), "ms", low=min(took), high=max(took), note=note)


def _ripgrep(run: Run, home: Path, texts: Sequence[str]) -> list[Row]:
    program = shutil.which("rg")
    if program is None:
        return [skipped("search", "ripgrep", "is not installed")]
    command = [program, "--no-config", "-c", "-a", "-F", "--no-ignore", "-g", "**/stream/*", "-e"]

    def ask(text: str) -> None:
        subprocess.run([*command, text, str(home)], stdout=subprocess.DEVNULL, check=False)

    ask(texts[0])
    return [_beside("ripgrep over the streams, warm, p95", texts[: run.count(20, 2)], ask, NOTE_RG)]


def _duckdb(run: Run, jsonl: Path, texts: Sequence[str]) -> list[Row]:
    with contextlib.suppress(ImportError):
        duckdb: Any = importlib.import_module("duckdb")
        with duckdb.connect() as database:

            def ask(text: str) -> None:
                database.execute(
                    "SELECT conversation, seq FROM"
                    " read_json(?, format='newline_delimited', maximum_object_size=67108864)"
                    " WHERE contains(output, ?) ORDER BY ts DESC LIMIT 100",
                    [str(jsonl), text],
                ).fetchall()

            ask(texts[0])
            return [_beside("DuckDB over JSONL, warm, p95", texts[: run.count(10, 2)], ask, NOTE_DUCKDB)]
    return [skipped("search", "DuckDB over JSONL", "is not installed")]


def _overview(run: Run) -> list[Row]:
    """Fill a catalogue with conversations of ten blocks, and look at it."""
    count, chance, clock = run.count(10_000, 100), random.Random(7), ManualClock()
    index = SqliteIndex(run.place / "many")
    try:
        for entries, positions in many(count, chance, clock):
            index.add(entries, positions)
        index.overview(Asked())
        rows = []
        for what, asked in (
            ("newest conversations, blocks and counts", Asked()),
            ("newest failed blocks", Asked(0, 50, failed=True)),
            ("blocks of one conversation", Asked(0, 50, conversation_id="c7")),
        ):
            took = []
            for _ in range(run.count(100, 5)):
                begin = time.perf_counter()
                index.overview(asked)
                took.append((time.perf_counter() - begin) * 1000)
            rows.append(
                Row("search", f"overview of {count} conversations: {what}, p95", percentile(took, 95), "ms",
                    aim="< 5 ms", met=percentile(took, 95) < 5, low=min(took), high=max(took))
            )  # fmt: skip
    finally:
        index.close()
    return rows


def many(
    count: int, chance: random.Random, clock: ManualClock
) -> Iterator[tuple[list[IndexEntry], dict[str, IndexWatermark]]]:
    entries: list[IndexEntry] = []
    positions: dict[str, IndexWatermark] = {}
    for number in range(count):
        for seq in range(1, 11):
            ts, status = clock.advance(7), chance.choice((0, 0, 0, 1, 2, None))
            block = Block(
                f"b{seq}", seq, "command", f"make {number}", "/", "Lw==", ts, ts + 5, 5, "ended", status, None,
                (seq * 100, seq * 100 + 50), None, 50, 1, "agent",
            )  # fmt: skip
            entries.append(IndexEntry(f"c{number}", block, ()))
        positions[f"c{number}"] = IndexWatermark(1000, 10, 5000)
        if len(entries) >= 5000:
            yield entries, positions
            entries, positions = [], {}
    yield entries, positions


async def _lag(run: Run) -> Row:
    lags = []
    async with Engine(run.place / "live") as engine:
        conversation = await engine.open("c1", shell="bash")
        await engine.search("x")
        reader = SqliteIndex(run.place / "live" / "index")
        try:
            for number in range(1, run.count(20, 3) + 1):
                await conversation.run(f"echo needle {number}")
                begin = time.perf_counter()
                while reader.positions().of.get("c1", IndexWatermark()).seq < number:  # noqa: ASYNC110
                    await asyncio.sleep(0.002)
                lags.append((time.perf_counter() - begin) * 1000)
        finally:
            reader.close()
    return Row(
        "search", "live lag, median", median(lags), "ms", aim="< 1000 ms", met=max(lags) < 1000, low=min(lags),
        high=max(lags), note=NOTE_LAG,
    )  # fmt: skip
