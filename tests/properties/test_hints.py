"""Whatever stands in the output: the hints are those that a plain reading finds, for every cut."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from blockpty.engine.hints import LEAD
from blockpty.engine.marks import MAX_MARK
from blockpty.testing import derive, events_of, every_split
from tests.support.machines import NONCE, property_settings, running

# As it is defined in words; it shares nothing with the engine.
HINT = re.compile(
    rb"\x1b\](?:(133|633|3008);([A-Za-z]{1,16})(?:[;=][\x20-\x7e\x80-\xff]*)?|(7);[\x20-\x7e\x80-\xff]*)(\x07|\x1b\\)"
)
WHOLE = [
    b"\x1b]133;A\x07", b"\x1b]133;C\x07", b"\x1b]133;D;0\x1b\\", b"\x1b]633;P;Cwd=/\x07", b"\x1b]7;file://h/\xc3\xa9\x07",
    b"\x1b]3008;start=1\x07", b"\x1b]0;t\x07", b"\x1b]7717;__BEGIN__;n=;i=9;s=1;c=1\x07",
    b"\x1b]7717;__END__;n=%s;i=9;s=1;c=1;x=0\x07" % NONCE.encode(), b"\x1b]7717;__END__;n=a;i=b;s=1;c=1\x1b\\",
]  # fmt: skip
BROKEN = [
    b"\x1b]133;", b"\x1b]13", b"\x1b]633;E", b"\x1b]7;", b"\x1b]3008;", b"\x1b]7717;", b"\x1b]77", b"\x1b]", b"\x1b",
    b"\x07", b"\x1b\\", b"\\", b"A", b"C", b";", b"=", b"\r\n", b"\x18", b"\x1b[1m", b"text",
    LEAD + b"\x1b]7717;__BEGIN__;",
]  # fmt: skip
PIECE = st.one_of(
    st.sampled_from(WHOLE),
    st.sampled_from(BROKEN),
    st.binary(max_size=6),
    st.tuples(st.sampled_from(WHOLE), st.integers(0, 40)).map(lambda cut: cut[0][: cut[1]]),
)
# True: a new part of the block begins here, with our own zone mark in front.
PARTS = st.lists(st.one_of(PIECE, PIECE, PIECE, st.just(True)), max_size=10)


def read(output: bytes) -> list[tuple[str, str, int, int]]:
    """Return what a plain reading of one part finds."""
    found = []
    for hint in HINT.finditer(output):
        if len(hint.group()) - len(hint.group(4)) < MAX_MARK:
            source, kind = hint.group(1) or hint.group(3), hint.group(2) or b"cwd"
            found.append((source.decode(), kind.decode(), *hint.span()))
    return found


@property_settings(80)
@example([LEAD, True, LEAD, LEAD, True])
@example([LEAD[:-1], True, b"\x1b]133;C", True, b"\x1b]133;C\x1b\\", True])
@given(PARTS)
def test_hints_are_those_of_a_plain_reading_for_every_cut(parts: list[bytes | bool]) -> None:
    pty, begin = running()
    expected = []
    for part in parts:
        if isinstance(part, bytes):
            pty.output(part)
            continue
        expected += [(source, kind, begin + at, begin + end)
                     for source, kind, at, end in read(pty.recording.stream[begin:])]  # fmt: skip
        pty.output(LEAD)
        pty.begin()
        begin = len(pty.recording.stream)
    expected += [(source, kind, begin + at, begin + end)
                 for source, kind, at, end in read(pty.recording.stream[begin:])]  # fmt: skip
    pty.end()
    pty.prompt()
    hints = [event.fields for event in events_of(pty.recording) if event.type == "hint"]
    assert [(hint["source"], hint["kind"], *hint["span"]) for hint in hints] == expected
    (block,) = (event.fields["block"] for event in events_of(pty.recording) if event.type == "agent_block_end")
    assert block["parts"] == 1 + sum(part is True for part in parts)
    whole = derive(pty.recording)
    for cuts in every_split(pty.recording.stream):
        assert derive(pty.recording, cuts) == whole, cuts
