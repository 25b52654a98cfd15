"""Random records for the properties."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from blockpty.model.entries import Entry
from blockpty.testing import FakePty, Recording
from tests.support.machines import NONCE

PIECES = st.sampled_from(
    [b"text", b"\r\n", b"\r", b"\n", b"\x1b", b"\x1b[1m", b"\x1b]0;t\x07", b"\x1b]", b"\x1b]7717;", b"\x1b]77", b"\x07",
     b"\x1b\\", b"\x18", NONCE.encode(), NONCE[:11].encode(), NONCE[11:].encode(), b"\xff\xc3", b" . /c/1\r\n",
     b"\x1b]133;A\x07", b"\x1b]133;C\x07", b"\x1b]133;C", b"\x1b]7;file:", b"\x1b]633;E\x1b\\",
     b"\x1b]3008;start=1\x07"]
)  # fmt: skip
SHELL = st.sampled_from(["spawn", "begin", "end", "prompt", "redraw", "submit", "late", "out_end", "ps2", "cwd"])
OTHER = st.sampled_from(["silence", "settle", "type", "resize", "tick", "exit", "eof", "interrupt"])
TRICK = st.tuples(st.sampled_from(["replay", "reverse", "truncate", "forge", "miss"]), st.integers(0, 400))
ACTS = st.lists(st.one_of(PIECES, SHELL, SHELL, OTHER, TRICK), max_size=40)
PLACES = st.lists(st.integers(0, 4000), max_size=6)


def _shell(pty: FakePty, act: str) -> None:
    if act in ("begin", "end", "prompt"):
        getattr(pty, act)()
    elif act == "spawn":
        pty.spawn(nonce=NONCE)
    elif act == "submit":
        pty.submit("x", "session" if len(pty.recording.stream) % 2 else "command")
    elif act == "late":
        pty.seq, pty.count = pty.seq + 1, pty.count + 1
        pty.end()
    elif act == "redraw":
        pty.output(pty.mark("PROMPT", x=0))
    else:
        pty.output(pty.mark(act.upper(), d="/tmp"))


def _other(pty: FakePty, act: str) -> None:
    pty.clock.advance(30)
    if act == "silence":
        pty.silence()
    elif act == "settle":
        pty.silence(icanon=False, echo=False, foreground="shell")
    elif act == "type":
        pty.type(b"typed\r")
    elif act == "resize":
        pty.entry("resize", cols=100, rows=30)
    elif act == "interrupt":
        pty.entry("note", note={"type": "interrupt"})
    else:
        pty.entry(act, status=3, signal=None)


def _trick(pty: FakePty, act: str, number: int) -> None:
    stream = pty.recording.stream
    own = pty.mark(("BEGIN", "END", "PROMPT")[number % 3], x=0, p=pty.prompts + 1)
    if act == "replay":
        pty.output(stream[number:])
    elif act == "reverse":
        pty.output(b"\x07".join(reversed(stream[-number:].split(b"\x07"))))
    elif act == "truncate":
        pty.output(own[: number % len(own)])
    elif act == "forge":
        pty.output(own.replace(NONCE.encode(), b"B" * 22))
    else:
        pty.output(own[:number] + b"." + own[number:])


def played(acts: list[Any], places: list[int]) -> Recording:
    """Return the record of these acts, with more silences wherever `places` says."""
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    for act in acts:
        if isinstance(act, bytes):
            pty.output(act)
        elif isinstance(act, tuple):
            if len(pty.recording.stream) < 4000:
                _trick(pty, *act)
        elif act in ("silence", "settle", "type", "resize", "tick", "exit", "eof", "interrupt"):
            _other(pty, act)
        else:
            _shell(pty, act)
    recording = pty.recording
    for number, place in enumerate(places):
        fields = {"ms": 25, "icanon": bool(number % 2), "echo": False, "foreground": ("shell", "child")[number % 3 > 0]}
        recording.entries.append(Entry(place % (len(recording.stream) + 1), 0, "silence", fields))
    recording.entries.sort(key=lambda entry: entry.offset)
    return recording


RECORDS = st.builds(played, ACTS, PLACES)
