"""The bridge to a far session, against a far side that cuts the connection wherever the test says."""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path

import pytest

from blockpty.host.ssh_bridge import FrameReader, framed
from tests.support.bridges import bridge_started

OUTPUT = "a\x1b[38;5;196mä€😀\x1b]0;title\x07\r\n".encode()
# Greets, and sends what was asked for up to the next cut; the connection before the last one ends within a frame.
FAR = """
import json, os, struct, sys
output, cuts, log = bytes.fromhex(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
asked = json.loads(sys.stdin.buffer.readline())
begin = asked["from"]
with open(log, "a") as file:
    print(begin, file=file)
end = next((cut for cut in cuts if cut > begin), len(output))
# From before what was asked for: what is known already is not written again.
early = max(0, begin - 3)
data = struct.pack(">Q", early) + output[early:end]
frame = b"O" + struct.pack(">I", len(data)) + data
out = b"noise\\n\\nblockpty-proxy " + json.dumps({"version": 1, "inputs": 0}).encode() + b"\\n" + frame
if end == len(output):
    how = json.dumps({"status": 7, "signal": None}).encode()
    out += b"X" + struct.pack(">I", len(how)) + how
else:
    out += frame[:4]
os.write(1, out)
if end == len(output):
    sys.stdin.buffer.read()
"""


def bridged(tmp_path: Path, cuts: list[int]) -> tuple[bytes, int]:
    """Run the bridge on a terminal; return what it writes, and its exit status."""
    (tmp_path / "far.py").write_text(FAR)
    far = [sys.executable, "-I", "-S", str(tmp_path / "far.py"), OUTPUT.hex(), json.dumps(cuts), str(tmp_path / "log")]
    # As `ssh` stands in the arguments: options may come behind it.
    (tmp_path / "ssh").write_text("#!/bin/sh\nexec " + " ".join(f"'{one}'" for one in far) + "\n")
    (tmp_path / "ssh").chmod(0o755)
    settings = {
        "ssh": [str(tmp_path / "ssh")], "command": "", "plain": [], "state": str(tmp_path / "state"), "instance": 1,
        "session": {"conversation": "c"},
        "silence_seconds": 15,
    }  # fmt: skip
    argv = bridge_started(tmp_path, "ssh_bridge", settings)
    pid, master = os.forkpty()
    if pid == 0:
        try:
            os.execv(sys.executable, argv)
        finally:
            os._exit(127)
    seen = b""
    try:
        while data := os.read(master, 65536):
            seen += data
    except OSError:
        pass
    os.close(master)
    return seen, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("step", [1, 2, 5])
def test_every_byte_is_written_once_wherever_it_is_cut(step: int, tmp_path: Path) -> None:
    cuts = [*range(1, len(OUTPUT), step)]
    assert bridged(tmp_path, cuts) == (OUTPUT, 7)
    assert [int(line) for line in (tmp_path / "log").read_text().split()] == [0, *cuts]
    said = json.loads((tmp_path / "state").read_text())
    assert (said["state"], said["connections"]) == ("up", len(cuts) + 1)
    assert not (tmp_path / "settings").exists()


def test_frames_are_the_same_however_they_are_cut() -> None:
    frames = [(b"O", struct.pack(">Q", 3) + b"abc"), (b"P", b""), (b"X", b"{}"), (b"A", struct.pack(">Q", 2**40))]
    data = b"".join(framed(kind, content) for kind, content in frames)
    for cut in range(len(data) + 1):
        reader = FrameReader()
        assert reader.feed(data[:cut]) + reader.feed(data[cut:]) == frames
