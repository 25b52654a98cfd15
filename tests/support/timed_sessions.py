"""A recorded session whose times are known."""

from __future__ import annotations

from blockpty.testing import FakePty
from tests.support.exports import pty


def timed_session() -> FakePty:
    """Three blocks at 1.5, 3.5 and 63.5 s, with the two lines of the second one a second apart."""
    made = pty()
    made.run("echo one", b"one\r\n")
    made.clock.advance(1975)
    made.submit("slow")
    made.begin()
    made.entry("tick")
    made.output(b"two\r\n")
    made.clock.advance(1000)
    made.entry("tick")
    made.output(b"\x1b[31mthree\xe2\x82")
    made.clock.advance(10)
    made.entry("tick")
    made.output(b"\xac\x1b[0m\r\n")
    made.end(3)
    made.prompt(3)
    made.clock.advance(58_990)
    made.entry("resize", cols=100, rows=30, author="agent")
    made.run("echo four", b"four\r\n")
    made.entry("exit", status=3, signal=None)
    return made
