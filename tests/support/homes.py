"""Homes full of recorded conversations, without a shell having run."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from blockpty.spool.checkpoint import FORMAT_VERSION, replace
from blockpty.spool.layout import Layout
from blockpty.testing import FakePty, Recording
from tests.support import disk

OPENED = {"shell": "bash", "cwd": "/", "cols": 80, "rows": 24, "login": False, "persist": False, "answers": True}


def recording(*, ended: bool, boot: str = "") -> Recording:
    """Return two blocks, and then the end of the shell, or a block that runs."""
    pty = FakePty()
    pty.spawn()
    if boot:
        pty.recording.entries[-1].fields["boot"] = boot  # type: ignore[index]
    pty.prompt()
    for number in range(2):
        pty.run(f"echo {number}", b"%d\r\n" % number)
    if ended:
        pty.entry("exit", status=0, signal=None)
        pty.entry("eof")
    else:
        pty.submit("sleep 9")
        pty.begin()
        pty.output(b"half")
        pty.silence()
    return pty.recording


async def fill(home: Path, names: Iterable[str], recorded: Recording) -> list[Layout]:
    """Put conversations into a home as an engine has left them."""
    layouts: list[Layout] = []
    for name in names:
        layout = Layout(home / "conversations" / name)
        if layouts:
            shutil.copytree(layouts[0].directory, layout.directory)
        else:
            layout.directory.mkdir(parents=True, mode=0o700)
            recorded.save(layout.directory)
            for directory in (layout.outputs, layout.commands):
                directory.mkdir()
            for path in (home, home / "conversations", layout.directory):
                path.chmod(0o700)
            await disk.recover(layout, name=name)
        replace(layout.meta, {"format": FORMAT_VERSION, "conversation_id": name, "created_ts": 1, "shell": "bash",
                              "open": OPENED})  # fmt: skip
        layouts.append(layout)
    return layouts
