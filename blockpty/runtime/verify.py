"""Verification: the files compared with what follows from stream and timeline, recorded waits included.

Rules of this file: nothing is written. The record is what it is when it is looked at; what lay there before that must
follow from it. Only at the ends of derived files something may be missing, that no engine has come to yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from blockpty.api.progress import Progress
from blockpty.engine.matchers import PatternTimeout
from blockpty.engine.records import new_nonce
from blockpty.engine.waiter import Outcome
from blockpty.errors import BadCondition, BadCursor, BlockptyError, SpoolCorrupt
from blockpty.host.recovery import read_synced
from blockpty.model.entries import DAMAGED, Entry
from blockpty.model.results import VerifyResult
from blockpty.runtime.drawn import DrawnStream
from blockpty.runtime.keyed_seals import Key, seals_in
from blockpty.runtime.record_reader import Position, RecordReader
from blockpty.runtime.redactor import Redactor
from blockpty.runtime.screens import Screens
from blockpty.runtime.waits import ResumePoints, WaitRequest, evaluate, first_point, outcome_to_note
from blockpty.spool import checkpoint
from blockpty.spool.chain import Chain
from blockpty.spool.compare import CompareSink, Lying
from blockpty.spool.journal import Journal
from blockpty.spool.layout import Layout
from blockpty.spool.log_start import load_log_start
from blockpty.spool.masking import Mask
from blockpty.spool.storage import file_size, open_file
from blockpty.spool.stream import StreamReader

_COMPARED = ("matched", "reason", "to_cursor", "index", "span", "match_text", "groups")


class Seen(Struct, frozen=True):
    """Snapshot that a verification begins with, taken in this order, since each part may only grow.

    Attributes:
        saved: the checkpoint; synced: how far the files were durable. Both: stream, timeline. None: not known.
        lying: what lies there of what is derived.
        written: how much of the journals was written once, and so must be there.
        record: how long stream and timeline are.
        until: how far to derive.
        damaged: whether there is a checkpoint that cannot be read.
        least, most: how long the recorder's files were before and after that; None when no shell runs.
    """

    saved: Position | None
    synced: Position | None
    lying: Lying
    written: tuple[int, int]
    record: Position
    until: Position
    damaged: bool = False
    least: Position | None = None
    most: Position | None = None

    @classmethod
    def of(cls, layout: Layout, until: Position | None = None, written: tuple[int, int] | None = None) -> Seen:
        """Look at the files; an engine that writes them says how far it has come, and what it has `written`."""
        saved, damaged = checkpoint.load_checkpoint(layout.checkpoint), False
        ends, vouched = None, (0, 0)
        if saved is None:
            damaged = checkpoint.is_damaged(layout.checkpoint)
        else:
            try:
                vouched = int(saved["files"]["events"][0]), int(saved["files"]["blocks"][0])
                ends = Position(*map(int, saved["ends"]))
            except (KeyError, TypeError, ValueError, IndexError):
                damaged = "ends" in saved
        noted = read_synced(str(layout.directory))
        synced = Position(noted.stream, noted.timeline) if noted is not None else None
        lying = Lying.of(layout)
        stream = StreamReader(layout.stream)
        try:
            size = stream.size()
        finally:
            stream.close()
        record = Position(size, file_size(layout.timeline))
        return cls(ends, synced, lying, vouched if written is None else written, record, until or record, damaged)


def verify(
    conversation_id: str,
    layout: Layout,
    seen: Seen,
    key: Key | None = None,
    *,
    redact: bool = True,
    pace: Callable[[], None] = lambda: None,
) -> VerifyResult:
    """Compare a conversation's files with its record; runs in any thread, reads only, calls `pace` between two pieces.

    Differences name the invariant: I1 stream and timeline, I2 spans, I3 event numbers, I4 derived files, I5 cursors, I6
    owners, I7 secrets, I8 waits.
    """
    verification = _Verification(conversation_id, layout, seen, key, pace)
    result = verification.run()
    return replace(result, differences=Redactor(verification.mask, redact).value(result.differences))


class _Verification:
    def __init__(
        self, conversation_id: str, layout: Layout, seen: Seen, key: Key | None, pace: Callable[[], None]
    ) -> None:
        self._pace = pace
        self._progress = Progress.of_caller()
        self._layout = layout
        self._seen = seen
        self._until = seen.until
        self._key = key
        self._stream = StreamReader(layout.stream)
        self._first = self._stream.begin
        self._length = max(0, seen.until.offset - self._first)
        self._drawn = DrawnStream(layout)
        self._screens = Screens(layout, self._drawn, lambda: self.mask)
        self._sink = CompareSink(layout, seen.lying, written=seen.written)
        self.mask = Mask()
        self._conversation_id = self._own_name(conversation_id)
        self._journal = Journal(self._conversation_id, self._stream, self._sink, self.mask)
        self._beginning = load_log_start(layout.directory)
        self._points = ResumePoints(first_point(self._beginning))
        self._requests: dict[str, tuple[WaitRequest, Position]] = {}
        self._waits = 0
        self._next_event = 0
        self._span_end = 0
        self._epoch = 0
        if self._beginning is not None:
            self._journal.restore(self._beginning.journal)
            self.mask = self._journal.mask
            output = self._beginning.journal["output"]
            places = {name: place[0] for name, place in self._beginning.files.items()}
            self._sink.begin(places, output[0] if output is not None else None)
            self._next_event = int(self._beginning.state["next_event"])

    def run(self) -> VerifyResult:
        reader = RecordReader(self._layout, self._stream)
        # The stream is read twice: for the chain of the timeline, and to derive all else from it.
        derived = self._derived()
        self._progress.begin("verify", 2 * self._length + sum(map(file_size, derived)))
        try:
            chain, sealed_to = self._record()
            try:
                self._derive(reader)
            except (BadCursor, SpoolCorrupt) as problem:
                self._sink.differ("I1", "stream", str(problem))
            if reader.position.offset < self._until.offset:
                self._sink.differ(
                    "I1", "stream", f"ends at {reader.position.offset}, readers have seen {self._until.offset}"
                )
            self._sink.finish(1 if self._beginning is None else self._beginning.first_block())
            self._secrets(derived)
            return VerifyResult(
                clean=not self._sink.differences,
                stream_bytes=reader.position.offset,
                events=self._sink.events,
                blocks=self._sink.blocks,
                waits=self._waits,
                differences=self._sink.differences,
                behind=self._sink.behind,
                vouched=[chain.begin, chain.last or 0] if chain.begin is not None else None,
                head=chain.head if chain.begin is not None else None,
                record=[chain.last or 0, chain.position],
                sealed_to=sealed_to,
            )
        finally:
            reader.close()
            self._screens.close()
            self._drawn.close()
            self._stream.close()

    def _derive(self, reader: RecordReader) -> None:
        reader.look()
        while (step := reader.step(self._until)) is not None:
            self._pace()
            self._progress.reach(self._length + reader.position.offset - self._first)
            if step.entry is not None:
                self._entry(step.entry)
                if step.entry.kind in ("silence", "input"):
                    self._points.add(reader.machine.state, reader.position)
            self._check(step.events, reader.position.offset)
            self._journal.append(step.events)
            if any(event.type in ("prompt", "agent_block_begin") for event in step.events):
                self._points.add(reader.machine.state, reader.position)

    def _own_name(self, conversation_id: str) -> str:
        """Return the name that the record was made under; its directory may have another."""
        try:
            own = str(checkpoint.load_meta(self._layout.meta).get("conversation_id"))
        except FileNotFoundError:
            return conversation_id  # a bare record
        if own != conversation_id:
            self._sink.differ("I4", "meta.json", f"is of the conversation {own!r}, in the place of {conversation_id!r}")
        return own

    def _record(self) -> tuple[Chain, int | None]:
        """Look whether stream and timeline are what was written; return how far a key has sealed them as well."""
        sink, seen = self._sink, self._seen
        chain = Chain(
            self._layout.timeline, self._stream, sink.differ, 0 if self._beginning is None else self._beginning.timeline
        )
        seals = seals_in(self._layout.timeline, seen.record.timeline) if self._key is not None else []
        chain.walk(
            seen.record.timeline, frozenset(at.timeline for at, _ in seals),
            lambda offset: self._progress.reach(min(offset - self._first, self._length)),
        )  # fmt: skip
        known_to = (("the checkpoint", seen.saved), ("`forced`", seen.synced), ("the recorder", seen.least))
        for name, known in known_to:
            if known is not None and known.offset > seen.record.offset:
                sink.differ("I1", "stream", f"ends at {seen.record.offset}, {name} has seen {known.offset} bytes")
            if known is not None and known.timeline > seen.record.timeline:
                message = f"ends at byte {seen.record.timeline}, {name} has seen {known.timeline}"
                sink.differ("I1", "timeline.jsonl", message)
        if seen.most is not None and seen.record.offset > seen.most.offset:
            sink.differ("I1", "stream", f"ends at {seen.record.offset}, the recorder is at {seen.most.offset}")
        if seen.most is not None and seen.record.timeline > seen.most.timeline:
            message = f"ends at byte {seen.record.timeline}, the recorder is at {seen.most.timeline}"
            sink.differ("I1", "timeline.jsonl", message)
        if seen.damaged:
            sink.differ("I4", "checkpoint.json", "is damaged")
        for end, begin in self._stream.unjoined():
            sink.differ("I1", "stream", f"a segment ends at {end}, the next one begins at {begin}")
        size = self._stream.size()
        if chain.last is not None and chain.last > size:
            sink.differ("I1", "stream", f"ends at {size}, the timeline speaks of {chain.last}")
        elif chain.last is not None and chain.last < seen.record.offset and chain.over:
            message = f"ends at {seen.record.offset}, the terminal was gone at {chain.last}"
            sink.differ("I1", "stream", message)
        if chain.torn is not None:
            message = f"the line at byte {chain.torn} has no end; who writes on takes it back"
            sink.behind.append({"where": "timeline.jsonl", "message": message})
        return chain, self._seals(seals, chain)

    def _seals(self, seals: list[tuple[Position, Mapping[str, Any]]], chain: Chain) -> int | None:
        """Check the seals of a key; return how far the last sound one goes."""
        if self._key is None:
            return None
        sealed_to = None
        for at, note in seals:
            where = f"the seal of byte {at.timeline} of timeline.jsonl"
            if note.get("key") != self._key.name:
                continue
            head = chain.heads.get(at.timeline)
            if head is not None and self._key.made(note, self._conversation_id, at, head):
                sealed_to = at.offset
            elif self._beginning is None or at.timeline > self._beginning.timeline:
                self._sink.differ("I1", where, "was made of another record")
        if sealed_to is None:
            self._sink.differ("I1", "timeline.jsonl", "has no seal that was made of this record with this key")
        return sealed_to

    def _entry(self, entry: Entry) -> None:
        if nonce := new_nonce(entry):
            self.mask.add(nonce)
        if entry.kind == DAMAGED:
            begin, end = entry.fields["bytes"]
            self._sink.differ("I1", "timeline.jsonl", f"bytes {begin} to {end} are damaged")
        note = entry.fields.get("note") if entry.kind == "note" else None
        if not isinstance(note, Mapping):
            return
        try:
            self._note(note, entry.offset)
        except (KeyError, TypeError, ValueError, BadCondition) as problem:
            message = f"a note of type {str(note.get('type'))[:40]!r} has not the form of one ({problem!r})"
            self._sink.differ("I1", f"timeline at {entry.offset}", message[:200])

    def _note(self, note: Mapping[str, Any], offset: int) -> None:
        if note.get("type") == "owner":
            epoch = int(note.get("epoch", 0))
            if epoch <= self._epoch:
                self._sink.differ("I6", f"timeline at {offset}", f"owner epoch {epoch} after {self._epoch}")
            self._epoch = epoch
        elif note.get("type") == "wait_begin":
            seen = note["seen"]
            self._requests[str(note["wait_id"])] = (
                WaitRequest.from_note(note),
                Position(int(seen["offset"]), int(seen["timeline"])),
            )
        elif note.get("type") == "wait_end":
            self._wait(note)

    def _wait(self, note: Mapping[str, Any]) -> None:
        wait_id = str(note["wait_id"])
        found = self._requests.pop(wait_id, None)
        if self._beginning is not None and (found is None or found[0].cursor < self._beginning.offset):
            return  # what it was answered from is not kept
        if found is None:
            self._sink.differ("I8", wait_id, "ended without a beginning")
            return
        request, seen = found
        horizon = Position(int(note["horizon"]["offset"]), int(note["horizon"]["timeline"]))
        start = self._points.before(request.cursor, seen.timeline)
        self._waits += 1
        try:
            outcome = evaluate(self._layout, self._stream, request, start, seen, horizon, self._screens)
        except PatternTimeout:
            if note["reason"] == "error":
                return
            self._sink.differ("I8", wait_id, "the pattern did not come to an end")
            return
        except BlockptyError as problem:
            self._sink.differ("I8", wait_id, str(problem))
            return
        self._compare(wait_id, note, outcome)

    def _compare(self, wait_id: str, note: Mapping[str, Any], outcome: Outcome | None) -> None:
        if note["reason"] in ("timeout", "cancelled", "error"):
            if outcome is not None:
                self._sink.differ(
                    "I8", wait_id, f"was {note['reason']}, the record gives {outcome.reason} at {outcome.at}"
                )
            return
        again = outcome_to_note(outcome) if outcome is not None else {"reason": "nothing"}
        for name in _COMPARED:
            if again.get(name) != note.get(name):
                self._sink.differ("I8", wait_id, f"{name} was {note.get(name)!r}, the record gives {again.get(name)!r}")

    def _check(self, events: list[Any], fed: int) -> None:
        for event in events:
            if event.seq != self._next_event:
                self._sink.differ("I3", f"event {event.seq}", f"comes after {self._next_event - 1}")
            self._next_event = event.seq + 1
            if event.cursor > fed:
                self._sink.differ(
                    "I5", f"event {event.seq}", f"cursor {event.cursor} lies behind the stream's end {fed}"
                )
            if event.type == "agent_block_end":
                begin, end = event.fields["block"]["span"]
                if begin < self._span_end or end < begin:
                    self._sink.differ(
                        "I2", event.fields["block_id"], f"span {begin}..{end} overlaps what ended at {self._span_end}"
                    )
                self._span_end = max(self._span_end, end)

    def _derived(self) -> list[Path]:
        outputs = sorted(self._layout.outputs.glob("*.out")) if self._layout.outputs.is_dir() else []
        return [self._layout.events, self._layout.blocks, *outputs]

    def _secrets(self, derived: Sequence[Path]) -> None:
        """No nonce in any derived file."""
        nonces = [nonce.encode() for nonce in self.mask.nonces]
        for path in derived:
            self._pace()
            if path.exists() and _contains(path, nonces):
                self._sink.differ("I7", path.name, "holds a nonce")
            self._progress.add(file_size(path))


def _contains(path: Path, needles: Sequence[bytes]) -> bool:
    carry = b""
    longest = max((len(needle) for needle in needles), default=1)
    try:
        descriptor = open_file(path)
    except SpoolCorrupt:
        return False  # that it is not a regular file is reported already
    with open(descriptor, "rb") as file:
        while piece := file.read(1024 * 1024):
            if any(needle in carry + piece for needle in needles):
                return True
            carry = piece[-longest:]
    return False
