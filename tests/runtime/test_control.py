"""Control of a conversation: taken in the middle of a paste, leased, asked for, halted; the record says who typed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import blockpty
from blockpty.control.principals import Principal, Scope, acting
from blockpty.errors import BadRequest, BlockptyError, Forbidden, UserInControl
from blockpty.runtime import control
from tests.support.async_tests import async_test

BOT = Principal("bot", Scope.ADMIN)
ANN = Principal("ann", Scope.WRITE, types_as="user")
BOB = Principal("bob", Scope.WRITE, types_as="user")

# Reads slowly, in raw mode, up to a byte that ends it, and says all that it got.
SLOW = """
import os, sys, termios, time, tty
was = termios.tcgetattr(0)
tty.setraw(0)
sys.stdout.write(sys.argv[2] + "ready\\r\\n")
sys.stdout.flush()
got = b""
while b"!" not in got:
    got += os.read(0, 512)
    time.sleep(0.001)
open(sys.argv[1], "wb").write(got)
termios.tcsetattr(0, termios.TCSANOW, was)
"""


async def slow(conversation: blockpty.Conversation, place: Path, *, bracketed: bool) -> Path:
    """Start a program that reads slowly; return the file in which it leaves what it has read."""
    (place / "slow.py").write_text(SLOW)
    mode = "'\x1b[?2004h'" if bracketed else "''"
    await conversation.exec_interactive(f"{sys.executable} {place}/slow.py {place}/got {mode}")
    await conversation.wait_for("ready")
    return place / "got"


async def typed(conversation: blockpty.Conversation) -> list[tuple[str, str]]:
    return [
        (event.fields["author"], event.fields.get("principal", ""))
        async for event in conversation.events(follow=False)
        if event.type == "input" and "submit" not in event.fields
    ]


@pytest.mark.needs("bash")
@pytest.mark.parametrize("how", ["send", "paste"])
@async_test
async def test_taken_in_the_middle_of_a_paste(home: Path, tmp_path: Path, how: str) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        got = await slow(conversation, tmp_path, bracketed=how == "paste")
        text = "".join(f"{number:07d}." for number in range(25_000))
        with acting(BOT):
            sending = asyncio.ensure_future(getattr(conversation, how)(text))
            waiting = asyncio.ensure_future(conversation.send("late"))
        async for event in conversation.events():
            # The agent is typing when its input is in the record.
            if event.fields.get("principal") == "bot":
                break
        with acting(ANN):
            taken = await conversation.take_control()
            await conversation.send("ann was here!")
        assert (taken.control, taken.who) == ("user", "ann")
        with pytest.raises(UserInControl) as cut:
            await sending
        with pytest.raises(UserInControl):
            await waiting
        await conversation.wait_for({"token": "PROMPT"})
        accepted = cut.value.details["accepted_bytes"]
        read = got.read_bytes()
        whole = (f"\x1b[200~{text}\x1b[201~" if how == "paste" else text).encode()
        assert 0 < accepted < len(whole) and len(whole) >= 200_000
        agents, person = read[:accepted], read[accepted:]
        assert agents == whole[:accepted]
        assert person == (b"\x1b[201~" if how == "paste" else b"") + b"ann was here!"
        authors = await typed(conversation)
        assert authors[0] == ("agent", "bot") and authors[-1] == ("user", "ann")
        cuts = [event.fields async for event in conversation.events(follow=False) if event.type == "anomaly"]
        assert [one["accepted"] for one in cuts] == [accepted]
        assert (await conversation.verify()).clean


@pytest.mark.needs("bash")
@async_test
async def test_two_persons_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(ANN):
            await conversation.take_control()
            await conversation.take_control()  # once more is no change
        with acting(BOB):
            with pytest.raises(UserInControl, match="ann"):
                await conversation.take_control()
            with pytest.raises(UserInControl, match="ann"):
                await conversation.send("x")
        with acting(BOT):
            for call in (
                conversation.run("true"), conversation.send_keys("x"), conversation.paste("x"), conversation.ctrl_c(),
                conversation.interrupt(), conversation.kill(), conversation.reset(), conversation.close(),
                conversation.exec_block("true"), conversation.exec_interactive("cat"), conversation.end_session(),
            ):  # fmt: skip
                # At a prompt some of these have nothing to do; none may do anything.
                with pytest.raises(BlockptyError) as refused:
                    await call
                assert refused.value.code in ("user_in_control", "no_session"), refused.value
            with pytest.raises(Forbidden):
                await conversation.take_control()
            with pytest.raises(Forbidden):
                await conversation.release_control()
        status = await conversation.status()
        assert (status.control, status.control_by, status.mode) == ("user", "ann", "idle")
        with acting(ANN):
            assert (await conversation.run("echo of ann")).block.author == "user"
            shared = await conversation.take_control(shared=True)
            assert (shared.control, shared.who) == ("shared", "ann")
        with acting(BOT):
            assert (await conversation.run("echo of bot")).output == "of bot\n"
        with acting(BOB):
            with pytest.raises(UserInControl):
                await conversation.send("x")
            # Another person can end it: it may have been left behind.
            assert (await conversation.release_control()).control == "agent"

        # Of two at once only one gets it, also while the engine first makes sure that it may write.
        own = conversation.own

        async def owned_later(*, stopping: bool = False) -> None:
            await asyncio.sleep(0)
            await own(stopping=stopping)

        async def take(principal: Principal) -> str:
            with acting(principal):
                return (await conversation.take_control()).who or ""

        monkeypatch.setattr(conversation, "own", owned_later)
        outcomes = await asyncio.gather(take(ANN), take(BOB), return_exceptions=True)
        assert outcomes[0] == "ann" and isinstance(outcomes[1], UserInControl)


@pytest.mark.needs("bash")
@async_test
async def test_who_has_control_is_a_person_and_its_input_a_principals(home: Path) -> None:
    """A token may stand for several persons, who take control under their own names."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(ANN):
            taken = await conversation.take_control("Ann the Second")
            assert taken.who == "Ann the Second"
            assert (await conversation.run("echo mine")).output == "mine\n"
            await conversation.resize(90, 30)
            with pytest.raises(UserInControl, match="Ann the Second"):
                await conversation.take_control("Ann the Third")
        with acting(BOT):
            with pytest.raises(UserInControl):
                await conversation.resize(80, 24)
            with pytest.raises(UserInControl):
                await conversation.enter_shell()
        with acting(ANN):
            await conversation.release_control()


async def lease_ended(conversation: blockpty.Conversation) -> None:
    async for event in conversation.events():
        if event.type == "control" and event.fields["reason"] == "lease_ended":
            return


@pytest.mark.needs("bash")
@async_test
async def test_a_lease_ends_with_its_connection(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "LEASE_SECONDS", 0.05)
    async with blockpty.Engine(home) as engine:
        conversation, another = await engine.open("c1", shell="bash"), await engine.open("c2", shell="bash")
        with acting(ANN):
            await conversation.take_control(lease=True)
        await lease_ended(conversation)
        assert (await conversation.status()).control == "agent"
        with acting(ANN):
            await conversation.take_control(lease=True)
        # A page that comes back is there before the server has seen the old one go.
        conversation.control.connect("ann")
        conversation.control.connect("ann")
        conversation.control.disconnect("ann")
        # Nor is that one gone because the page of another person is.
        conversation.control.connect("bob")
        conversation.control.disconnect("bob")
        # One that has begun later ends.
        with acting(ANN):
            await another.take_control(lease=True)
        await lease_ended(another)
        assert conversation.control.state.state == "user"
        # An open page of the previous holder does not extend the lease of the present one.
        conversation.control.connect("bob")
        conversation.control.disconnect("ann")
        async for event in conversation.events(0):
            ended = event.type == "control" and event.fields["reason"] == "lease_ended"
            if ended and event.cursor >= 0 and (await conversation.status()).control == "agent":
                break


@pytest.mark.needs("bash")
@pytest.mark.parametrize("outcome", ["done", "cancelled", "timeout"])
@async_test
async def test_an_agent_asks_for_a_person(home: Path, outcome: str) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(BOT):
            seconds = 1 if outcome == "timeout" else 60
            asking = asyncio.ensure_future(conversation.request_user_input("the code, please", timeout_seconds=seconds))
            async for event in conversation.events():
                if event.type == "control":
                    break
            with pytest.raises(UserInControl, match="a person"):
                await conversation.run("true")
            with pytest.raises(BadRequest):
                await conversation.request_user_input("me too")
        if outcome != "timeout":
            with acting(ANN):
                await conversation.take_control()
                await conversation.run("code=7")
                await conversation.release_control(cancelled=outcome == "cancelled")
        with acting(BOT):
            assert (await asking).outcome == outcome
            assert (await conversation.run("echo $code")).output == ("\n" if outcome == "timeout" else "7\n")
        types = [event.type async for event in conversation.events(follow=False) if event.type.startswith("user_")]
        assert types == ["user_input_requested", "user_input_done"]
        assert (await conversation.verify()).clean
