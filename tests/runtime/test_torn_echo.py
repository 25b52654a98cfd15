"""Many lines typed at once: the kernel writes what the program prints into the middle of their echo."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time

import pytest

from blockpty.engine.echo import EchoFilter, expectations

RUNS, SENDS, LINES = 40, 6, 120
BOUND_SECONDS = 30.0


def typed_to_cat() -> tuple[bytes, list[tuple[int, bytes]]]:
    """What a terminal gives that many lines are typed into, and where each of the inputs began."""
    master, slave = pty.openpty()
    program = subprocess.Popen(["cat"], stdin=slave, stdout=slave, start_new_session=True)
    os.close(slave)
    os.set_blocking(master, False)
    stream, inputs = b"", []
    end = time.monotonic() + BOUND_SECONDS
    try:
        for number in range(SENDS):
            text = b"".join(b"number %d end\n" % line for line in range(number * LINES, (number + 1) * LINES))
            inputs.append((len(stream), text))
            whole, left = len(stream) + 2 * (len(text) + LINES), text
            while len(stream) < whole:
                assert time.monotonic() < end
                try:
                    left = left[os.write(master, left) :] if left else left
                    stream += os.read(master, 65536)
                except BlockingIOError:
                    select.select([master], [], [], 0.01)
    finally:
        program.kill()
        program.wait()
        os.close(master)
    return stream, inputs


@pytest.mark.linux
def test_no_line_of_the_program_is_taken_for_torn_echo() -> None:
    for _ in range(RUNS):
        stream, inputs = typed_to_cat()
        echo, output, at = EchoFilter(), b"", 0
        for offset, text in inputs:
            output += b"".join(data for _, data in echo.feed(stream[at:offset], at))
            echo.expect(expectations(offset, text, True, True))
            at = offset
        output += b"".join(data for _, data in echo.feed(stream[at:], at))
        output += b"".join(data for _, data in echo.flush())
        missed = [line for line in range(SENDS * LINES) if b"number %d end" % line not in output]
        assert missed == []
