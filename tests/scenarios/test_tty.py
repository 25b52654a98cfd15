"""What the terminal is doing, for real programs: in `status` and in the results of waits."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.scenarios.stage import PROMPT, Stage, in_every_shell, open_stage
from tests.support.async_tests import async_test
from tests.support.terminal_readers import can_be_known

PYTHON: Final = shlex.quote(sys.executable)
GETPASS: Final = f"{PYTHON} -c 'import getpass; print(len(getpass.getpass(\"Password: \")))'"
# Command, what it shows when it is there, how its terminal is then, and what ends it.
PROGRAMS: Final[dict[str, tuple[str, Any, str, bytes]]] = {
    "getpass": (GETPASS, "Password:", "password", b"secret\r"),
    "less": ("less -+F -+X file", {"regex": "^file$"}, "alt_screen", b"q"),
    "vi": ("vi file", {"regex": "line 5"}, "alt_screen", b"\x1b:q!\r"),
    "python": (f"{PYTHON} -i -q -c 'print(\"there\")'", ">>>", "raw", b"exit()\r"),
    "cat": ("echo there; cat", {"regex": "^there$"}, "reads_line", b"\x04"),
    "read": ("echo there; read -r x", {"regex": "^there$"}, "reads_line", b"x\r"),
    "child": ("echo there; sh -c 'cat; :'", {"regex": "^there$"}, "reads_line", b"\x04"),
    "pipeline": ("echo there; true | cat - /dev/tty", {"regex": "^there$"}, "reads_line", b"\x04"),
    # Its own process says that it is there: a Ctrl-C before zsh has given the terminal away does not reach it.
    "sleep": ("sh -c 'echo there; exec sleep 1000'", {"regex": "^there$"}, "running", b"\x03"),
}


async def tty(stage: Stage, wanted: str, cursor: int) -> tuple[str | None, str | None]:
    """Return what `status` and a wait say once the program has come so far; tells at last what they say instead."""
    waited = None
    for _ in range(200):
        waited = (await stage.conversation.wait_for({"idle_ms": 25}, from_cursor=cursor, timeout_ms=5000)).tty
        status = (await stage.conversation.status()).tty
        if status == waited == wanted:
            break
        cursor = (await stage.conversation.status()).cursor
    return status, waited


@pytest.mark.parametrize("name", PROGRAMS)
@in_every_shell()
@async_test(timeout_seconds=60)
async def test_what_a_program_does_with_its_terminal(name: str, shell: str, home: Path) -> None:
    command, there, wanted, end = PROGRAMS[name]
    if wanted == "reads_line" and not can_be_known():
        pytest.skip("this kernel does not tell what the processes of others wait for")
    async with open_stage(home, shell) as stage:
        (stage.folder / "file").write_text("".join(f"line {number}\n" for number in range(1, 1001)))
        session = await stage.conversation.exec_interactive(command)
        await stage.wait(there, session.cursor)
        status, waited = await tty(stage, wanted, session.cursor)
        assert (status, waited) == (wanted, wanted)
        cursor = await stage.type(end)
        await stage.wait(PROMPT, cursor)
        assert (await stage.conversation.status()).tty == "at_prompt"


@in_every_shell()
@async_test(timeout_seconds=60)
async def test_an_incomplete_input_is_reported_and_aborted(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        cursor = await stage.type(b"echo 'open\r")
        waited = await stage.conversation.wait_for("never", from_cursor=cursor, timeout_ms=5000)
        assert (waited.reason, waited.tty) == ("incomplete_input", "incomplete_input")
        assert (await stage.conversation.status()).tty == "incomplete_input"
        # A wait that is begun behind the silence is not left waiting either.
        late = await stage.conversation.wait_for(PROMPT, from_cursor=cursor, timeout_ms=20_000)
        assert (late.matched, late.reason) == (False, "incomplete_input")
        await stage.conversation.ctrl_c()
        await stage.wait(PROMPT, cursor)
        assert (await stage.conversation.status()).tty == "at_prompt"
        assert (await stage.run("echo next")).output == "next\n"
        assert [block.cmd for block in await stage.blocks()] == ["echo next"]
