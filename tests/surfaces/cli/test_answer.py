"""`blockpty answer` on a real terminal, while an agent waits at a server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from blockpty.errors import ApprovalDenied
from blockpty.surfaces.client import Client
from tests.support.asking_agents import CHOICES, agent, asking
from tests.support.async_tests import async_test
from tests.support.cli_terminal import start, unsafe

pytestmark = pytest.mark.needs("bash")


async def answered(*steps: str, arguments: tuple[str, ...] = ()) -> str:
    """Run `answer` on a terminal; steps are what to wait for and what to type, in turn. Return all that was shown."""

    def converse() -> str:
        with start("answer", *arguments, columns=100) as terminal:
            shown = b""
            for expected, typed in zip(steps[::2], steps[1::2], strict=True):
                terminal.expect_exact(expected)
                shown += terminal.before + terminal.after
                terminal.send(typed)
            shown += terminal.read()
        assert terminal.exitstatus == 0, shown
        text: str = shown.decode()
        assert not unsafe(text)
        return text.replace("\r\n", "\n")

    return await asyncio.to_thread(converse)


@async_test
async def test_once(home: Path) -> None:
    async with agent(home) as client, asking(client, "echo one\necho \u202etwo") as call:
        shown = await answered(CHOICES, "y\n")
        assert "a1.1 in c1: owner/mcp asks for run" in shown and "invisible characters" in shown
        assert "  | echo one\n  | echo <U+202E>two\n  directory  /\n  rule       default.unknown\n" in shown
        assert shown.endswith("a1.1: allowed once\n")
        assert (await call).output == "one\n\u202etwo\n"
        # Once is once.
        async with asking(client, "echo one\necho \u202etwo"):
            assert "a1.2: denied" in await answered(CHOICES, "n\n")


@async_test
async def test_for_the_conversation(home: Path) -> None:
    async with agent(home) as client:
        async with asking(client, "echo one") as call:
            assert "allowed in this conversation" in await answered(CHOICES, "c\n", arguments=("c1",))
            assert (await call).output == "one\n"
        assert (await (await client.conversation("c1")).run("echo one")).output == "one\n"


@async_test
async def test_always_shows_the_rule_and_asks_again(home: Path) -> None:
    async with agent(home) as client, asking(client, "echo one") as call:
        again = "Allow this always? [y]es, [n]o: "
        shown = await answered(CHOICES, "a\n", again, "n\n", CHOICES, "a\n", again, "y\n")
        assert '  | exact = "echo one"\n' in shown and shown.endswith("allowed always; the rule is in policy.toml\n")
        assert (await call).output == "one\n"
        assert 'exact = "echo one"' in (home / "policy.toml").read_text()


@async_test
async def test_no_with_a_reason(home: Path) -> None:
    async with agent(home) as client, asking(client, "echo one") as call:
        shown = await answered(CHOICES, "perhaps\n", CHOICES, "r\n", "Reason, for the agent: ", "not today\n")
        assert shown.endswith("a1.1: denied\n")
        with pytest.raises(ApprovalDenied, match="owner does not allow this: not today"):
            await call


@async_test
async def test_skipping_and_leaving_answer_nothing(home: Path) -> None:
    async with agent(home) as client, asking(client, "echo one"):
        for typed in ("s\n", "q\n", "\x04"):
            assert "a1.1:" not in (await answered(CHOICES, typed)).replace("a1.1 in c1:", "")
        assert len((await client.approvals()).approvals) == 1
        await answered(CHOICES, "n\n")


@async_test
async def test_keys_typed_before_the_question_was_shown_do_not_answer(home: Path) -> None:
    async with agent(home) as client:

        def converse() -> str:
            with start("answer", "--follow", columns=100) as terminal:
                terminal.expect_exact("waiting for the next question")
                # For something else, whole lines and one that is not finished.
                terminal.send("y\ny\ny")
                terminal.expect_exact("y\r\ny\r\ny")
                loop.call_soon_threadsafe(typed.set)
                terminal.expect_exact(CHOICES)
                terminal.send("n\n")
                terminal.expect_exact("a1.1: denied")
                terminal.expect_exact("waiting for the next question")
                terminal.sendintr()
                return str(terminal.read().decode())

        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        person = asyncio.create_task(asyncio.to_thread(converse))
        await asyncio.wait_for(typed.wait(), 60)
        async with asking(client, "echo one") as call:
            with pytest.raises(ApprovalDenied):
                await call
        assert "Traceback" not in await person


@pytest.mark.parametrize("typed", ["", "y\n"])
@async_test
async def test_a_question_that_went_away_says_so(home: Path, typed: str) -> None:
    async with agent(home) as client, asking(client, "echo one") as call:

        def converse() -> str:
            with start("answer", columns=120) as terminal:
                terminal.expect_exact(CHOICES)
                asyncio.run_coroutine_threadsafe(withdraw(), loop).result(30)
                terminal.send(typed)
                return str(terminal.read().decode())

        async def withdraw() -> None:
            async with Client(home) as other:
                (one,) = (await other.approvals()).approvals
                await (await other.conversation("c1")).deny(one["approval_id"], one["digest"])

        loop = asyncio.get_running_loop()
        shown = await asyncio.to_thread(converse)
        assert "a1.1 is no longer pending (not_found)" in shown and "Traceback" not in shown
        with pytest.raises(ApprovalDenied):
            await call


@async_test
async def test_nothing_waits(home: Path) -> None:
    async with agent(home):
        assert await answered() == "blockpty: no approvals are pending\n"


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_it_needs_a_terminal(home: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "blockpty", "answer", *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and "approve and deny" in done.stdout + done.stderr
    assert list(home.iterdir()) == []


def test_read_only_refuses_it(home: Path) -> None:
    with start("--read-only", "answer") as terminal:
        assert b"--read-only" in terminal.read()
    assert terminal.exitstatus == 1
