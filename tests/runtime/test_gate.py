"""Nothing reaches a terminal before its verdict, whatever the order of requests, verdicts, time-outs and kills."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.control.policy import DEFAULT_ACTIONS, default_policy_text
from blockpty.control.principals import Principal, Scope, acting
from blockpty.errors import (
    ApprovalDenied,
    ApprovalRequired,
    BadRequest,
    BlockptyError,
    Forbidden,
    NotFound,
    Stale,
)
from blockpty.ops.operation import Effect
from blockpty.ops.table import OPERATIONS
from blockpty.runtime.gate import LONGEST_LINE, unfinished_line
from blockpty.surfaces import launching
from blockpty.surfaces.client import Client, RemoteConversation
from tests.support.async_tests import async_test
from tests.support.policies import ASKS, asked, write_policy
from tests.support.profile import LONG

BOT = Principal("bot", Scope.ADMIN)
ANN = Principal("ann", Scope.WRITE, types_as="user")
SEEDS = 4 if LONG else 2


def entries(home: Path, name: str) -> list[dict[str, Any]]:
    lines = (home / "conversations" / name / "timeline.jsonl").read_bytes().splitlines()
    return [json.loads(line) for line in lines]


def typed_by_agents(home: Path, name: str) -> list[tuple[int, str]]:
    """Return what agents typed, with the places of the entries."""
    found = []
    for place, entry in enumerate(entries(home, name)):
        if entry["kind"] == "input" and entry["author"] == "agent":
            found.append((place, entry["submit"]["cmd"] if "submit" in entry else entry.get("data", "")))
    return found


def assert_allowed_before(home: Path, name: str) -> int:
    """Hold what agents typed against the verdicts before it in the record; return how much was typed."""
    record = entries(home, name)
    typed = typed_by_agents(home, name)
    for place, text in typed:
        notes = [entry["note"] for entry in record[:place] if entry["kind"] == "note"]
        asked = {note["approval_id"]: note for note in notes if note["type"] == "approval_requested"}
        allowed = [
            asked[note["approval_id"]]["text"]
            for note in notes
            if note["type"] == "approval_decided" and note["verdict"] == "approved"
        ]
        assert text in allowed, (text, "was typed, and no person had allowed it")
        assert [one for _, one in typed].count(text) <= allowed.count(text)
    return len(typed)


class Persons:
    """A person who gives verdicts at random, and remembers them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.said: dict[str, str] = {}

    async def look(self, engine: blockpty.Engine) -> None:
        for one in (await engine.approvals()).approvals:
            conversation = await engine.conversation(one["conversation_id"])
            with acting(ANN), contextlib.suppress(NotFound):
                await self._answer(conversation, one)

    async def _answer(self, conversation: blockpty.Conversation, one: dict[str, Any]) -> None:
        verdict = self._chance.choice(["approve", "deny", "stale", "wait", "wait"])
        if verdict == "approve":
            await conversation.approve(one["approval_id"], one["digest"])
            self.said[one["text"]] = "approved"
        elif verdict == "deny":
            await conversation.deny(one["approval_id"], one["digest"])
            self.said[one["text"]] = "denied"
        elif verdict == "stale":
            with pytest.raises(Stale):
                await conversation.approve(one["approval_id"], "f" * 64)


async def one_engine(home: Path, chance: random.Random, persons: Persons, name: str) -> None:
    """Have agents ask, persons answer, and calls be cancelled and halted, in random order."""

    async def agent(conversation: blockpty.Conversation, text: str) -> None:
        with acting(BOT), contextlib.suppress(BlockptyError):
            await conversation.run(text, timeout_ms=5000)

    async with blockpty.Engine(home) as engine:
        live = await engine.live()
        conversations = [
            await (engine.conversation(one) if one in live else engine.open(one, shell="bash", persist=True))
            for one in ("c1", "c2")
        ]
        tasks: list[asyncio.Future[None]] = []
        for number in range(14):
            action = chance.randrange(8)
            if action < 4:
                tasks.append(asyncio.ensure_future(agent(chance.choice(conversations), f": {name}.{number}")))
            elif action == 4 and tasks:
                chance.choice(tasks).cancel()
            elif action == 5:
                with acting(ANN):
                    await engine.halt(chance.choice(["c1", None]))
                    await engine.release()
                    await engine.release("c1")
            for _ in range(chance.choice([0, 1, 2, 20, 100])):
                await asyncio.sleep(0)
            await persons.look(engine)
        if tasks and chance.random() < 0.5:
            await asyncio.wait(tasks)
        for task in tasks:
            task.cancel()


@pytest.mark.needs("bash")
@pytest.mark.parametrize("seed", range(SEEDS))
@async_test
async def test_nothing_is_typed_before_its_verdict(home: Path, seed: int) -> None:
    chance = random.Random(seed)
    write_policy(home, ASKS.format(seconds=1))
    persons = Persons(chance)
    for number in range(3):
        await one_engine(home, chance, persons, str(number))
    assert "approved" in persons.said.values()
    for name in ("c1", "c2"):
        assert_allowed_before(home, name)
        assert not {text for _, text in typed_by_agents(home, name) if persons.said.get(text) != "approved"}
    async with blockpty.Engine(home) as engine:
        for name in ("c1", "c2"):
            conversation = await engine.conversation(name)
            await conversation.noted()
            assert not conversation.live.state.requests, "what a gone engine had asked is withdrawn"
            assert (await conversation.verify()).clean
            await conversation.close()


async def kill_server(home: Path) -> None:
    state = launching.state(home)
    if state is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(state["pid"], signal.SIGKILL)


async def reached(person: Client, text: str, asking: asyncio.Future[None]) -> None:
    """Return when the question waits for a person, or its call has ended."""
    while not asking.done():
        with contextlib.suppress(BlockptyError):
            if text in {one["text"] for one in (await person.approvals()).approvals}:
                return
        await asyncio.sleep(0.01)


async def one_server(home: Path, chance: random.Random, said: dict[str, str]) -> None:
    """Have an agent ask through the server, a person answer, and the server be killed, in random order."""

    async def ask(conversation: RemoteConversation, text: str) -> None:
        with contextlib.suppress(BlockptyError):
            await conversation.run(text, timeout_ms=5000)

    async with Client(home, agent="bot") as agent, Client(home) as person:
        conversation, theirs = await agent.conversation("c1"), await person.conversation("c1")
        tasks: list[asyncio.Future[None]] = []
        for number in range(12):
            action = chance.choice(["ask", "ask", "ask", "look", "look", "kill"])
            if action == "ask":
                tasks.append(asyncio.ensure_future(ask(conversation, f": {number}")))
                if chance.random() < 0.5:
                    await reached(person, f": {number}", tasks[-1])
                else:
                    await asyncio.sleep(0)
            elif action == "kill":
                await kill_server(home)
            else:
                with contextlib.suppress(BlockptyError):
                    for one in (await person.approvals()).approvals:
                        verdict = chance.choice(["approve", "deny", "wait"])
                        if verdict != "wait":
                            # A server that dies in the middle may have taken the verdict.
                            said[one["text"]] = verdict
                            await getattr(theirs, verdict)(one["approval_id"], one["digest"])
        await kill_server(home)
        await asyncio.gather(*tasks)


@pytest.mark.needs("bash")
@pytest.mark.parametrize("seed", range(SEEDS))
@async_test
async def test_a_killed_server_types_nothing_later(home: Path, seed: int) -> None:
    chance = random.Random(seed)
    write_policy(home, ASKS.format(seconds=2))
    said: dict[str, str] = {}
    async with Client(home) as person:
        await person.open("c1", shell="bash", persist=True)
    await one_server(home, chance, said)
    async with Client(home) as person:
        # The next server withdraws what the killed ones had asked.
        theirs = await person.conversation("c1")
        assert (await person.approvals()).approvals == []
        assert (await theirs.status()).mode == "idle"
        assert_allowed_before(home, "c1")
        assert not {text for _, text in typed_by_agents(home, "c1") if said.get(text) != "approve"}
        notes = [one["note"] for one in entries(home, "c1") if one["kind"] == "note"]
        asked_for = {note["approval_id"] for note in notes if note["type"] == "approval_requested"}
        decided = [note["approval_id"] for note in notes if note["type"] == "approval_decided"]
        assert len(decided) == len(set(decided)) and set(decided) == asked_for
        assert (await person.verify("c1")).clean
        await theirs.close()


@pytest.mark.needs("bash")
@async_test
async def test_what_is_true_when_it_is_typed_counts(home: Path, tmp_path: Path) -> None:
    """A command that was allowed in one directory is asked for again when the shell has gone to another."""
    write_policy(home, ASKS.format(seconds=60))
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=tmp_path)
        with acting(BOT):
            running = asyncio.ensure_future(conversation.run("pwd"))
        with acting(ANN):
            await asked(conversation)
            waiting = (await engine.approvals()).approvals
            await conversation.run("cd /")
            await conversation.approve(waiting[0]["approval_id"], waiting[0]["digest"])
            await asked(conversation, 2)
            again = (await engine.approvals()).approvals
            assert (waiting[0]["cwd"], again[0]["cwd"]) == (str(tmp_path), "/")
            await conversation.deny(again[0]["approval_id"], again[0]["digest"], reason="not there")
        with pytest.raises(ApprovalDenied, match="ann does not allow this: not there"):
            await running


@pytest.mark.needs("bash")
@async_test
async def test_how_far_an_approval_goes(home: Path) -> None:
    write_policy(home, ASKS.format(seconds=60))
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")

        async def run(text: str, scope: str | None) -> blockpty.model.results.RunResult:  # type: ignore[name-defined]
            with acting(BOT):
                running = asyncio.ensure_future(conversation.run(text))
            while not running.done():
                for one in (await engine.approvals()).approvals:
                    assert scope is not None, "no person is to be asked again"
                    with acting(BOT), pytest.raises(Forbidden):
                        await conversation.approve(one["approval_id"], one["digest"])
                    with acting(ANN):
                        await conversation.approve(one["approval_id"], one["digest"], scope=scope)
                await asyncio.sleep(0)
            return await running

        await run("echo once", "once")
        await run("echo once", "once")
        await run("echo here", "conversation")
        assert (await run("echo here", None)).output == "here\n"
        await run("echo always", "always")
        assert (await run("echo always", None)).output == "always\n"
        assert 'exact = "echo always"' in (home / "policy.toml").read_text()
        verdicts = [one for one in (await engine.audit()).entries if one["type"] == "verdict"]
        assert [one["scope"] for one in verdicts] == ["always", "conversation", "once", "once"]
        assert "echo" not in json.dumps(verdicts)


async def until_refused(conversation: blockpty.Conversation) -> None:
    while True:  # a change is noticed within a second
        await conversation.run("true")


@pytest.mark.needs("bash")
@async_test
async def test_a_policy_that_is_wrong_allows_agents_nothing(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(BOT):
            assert (await conversation.run("echo on")).output == "on\n"
            write_policy(home, "rules = 3")
            with pytest.raises(BadRequest, match=r"policy\.toml"):
                await until_refused(conversation)
        with acting(ANN):
            assert (await conversation.run("echo mine")).output == "mine\n"
        (home / "policy.toml").unlink()
        with acting(BOT):
            while True:
                with contextlib.suppress(BadRequest):
                    await conversation.run("true")
                    break


@pytest.mark.needs("bash")
@async_test
async def test_a_file_that_only_has_sandboxes_decides_nothing(home: Path) -> None:
    write_policy(home, "[sandbox.tight]\nnetwork = false\n")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(BOT):
            assert (await conversation.run('eval "echo $HOME" > /dev/null; echo on')).output == "on\n"


@pytest.mark.needs("bash")
@async_test
async def test_a_line_that_comes_in_pieces_is_checked_whole(home: Path) -> None:
    write_policy(home, '[[rule]]\nname = "rm"\naction = "deny"\ncommands = ["rm"]\n')
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(BOT):
            await conversation.exec_interactive("PS1='ready> ' bash --norc")
            await conversation.wait_for("ready> ")
            await conversation.send("r")
            with pytest.raises(ApprovalDenied):
                await conversation.send("m x\r")
            await conversation.send_keys("^U")
            await conversation.send("echo m$((1 + 1))x\r")
            assert (await conversation.wait_for("m2x")).matched
            for part in ("echo a; ", "rm "):
                try:
                    await conversation.send(part)
                except ApprovalDenied:
                    break
            else:
                pytest.fail("the line was typed whole")


async def until(conversation: blockpty.Conversation, **facts: str) -> None:
    """Return when `status` says this."""
    while True:
        status = await conversation.status()
        if all(getattr(status, name) == value for name, value in facts.items()):
            return


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ls", "ls"), ("ls\r", ""), ("ls\npwd", "pwd"), ("rm \\\r", "rm \\\r"), ("rm \\\n-r", "rm \\\n-r"),
        ("a \\\\\r", ""), ("a \\\\\\\r", "a \\\\\\\r"), ("rm \\\x03ls", "ls"), ("ls\x15pwd", "pwd"),
        ("\x04", ""), ("\x0c", ""),
        ("a" * LONGEST_LINE, "a" * LONGEST_LINE), ("rm" + " " * LONGEST_LINE, "\0"),
    ],
)  # fmt: skip
def test_what_of_a_text_has_not_been_entered(text: str, line: str) -> None:
    assert unfinished_line(text) == line


@pytest.mark.needs("bash")
@async_test
async def test_a_line_that_a_backslash_continues_is_checked_whole(home: Path) -> None:
    write_policy(home, '[[rule]]\nname = "rm"\naction = "deny"\ncommands = ["rm"]\n')
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(BOT):
            await conversation.exec_interactive("PS1='ready> ' bash --norc")
            await conversation.wait_for("ready> ")
            await conversation.send("r\\\r")
            with pytest.raises(ApprovalDenied):
                await conversation.send("m x\r")


@pytest.mark.needs("bash")
@async_test
async def test_what_a_busy_program_leaves_to_the_shell_is_checked(home: Path) -> None:
    write_policy(home, '[[rule]]\nname = "rm"\naction = "deny"\ncommands = ["rm"]\n')
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(BOT):
            await conversation.exec_block("sleep 1000")
            await until(conversation, foreground="sleep", tty="running")
            for begun, rest in (("", "rm x\r"), ("r", "m x\r"), ("", "echo on\rrm x\r")):
                await conversation.send(begun)
                with pytest.raises(ApprovalDenied):
                    await conversation.send(rest)
                await conversation.send("\x15")
            await conversation.send("echo o$((1 + 1))n\r")
            await conversation.interrupt()
            # A wait ends at the prompt that comes before the shell reads what was typed.
            while not (await conversation.wait_for("o2n")).matched:
                pass


@pytest.mark.needs("bash")
@async_test
async def test_a_secret_hides_no_command(home: Path) -> None:
    write_policy(home, 'approval_timeout_seconds = 0\n[default]\npassword = "allow"\n'
                       '[[rule]]\nname = "rm"\naction = "deny"\ncommands = ["rm"]\n')
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(BOT):
            await conversation.exec_interactive("PS1='ready> ' bash --norc")
            await conversation.wait_for("ready> ")
            with pytest.raises(ApprovalDenied, match="rm"):
                await conversation.send("rm x\r", secret=True)
            await conversation.send("r", secret=True)
            with pytest.raises(ApprovalDenied):
                await conversation.send("m x\r")
        notes = [one["note"] for one in entries(home, "c1") if one["kind"] == "note"]
        (one,) = [note for note in notes if note["type"] == "approval_requested"]
        assert one["text"] == "^@m x^M", "the secret is not shown"


@pytest.mark.needs("bash")
@async_test
async def test_a_command_in_another_directory_deletes_outside(home: Path, tmp_path: Path) -> None:
    write_policy(home, "approval_timeout_seconds = 0\n" + default_policy_text())
    for name in ("here/sub/x", "there/x"):
        (tmp_path / name).mkdir(parents=True)
    async with blockpty.Engine(home) as engine:
        with acting(BOT):
            conversation = await engine.open("c1", shell="bash", cwd=tmp_path / "here")
            with pytest.raises(ApprovalDenied):
                await conversation.run("rm -r x", cwd=str(tmp_path / "there"))
            await conversation.run("rm -r x", cwd="sub")
    assert (tmp_path / "there/x").exists() and not (tmp_path / "here/sub/x").exists()


@pytest.mark.needs("bash")
@async_test
async def test_the_variables_of_a_shell_that_is_opened_are_checked(home: Path, tmp_path: Path) -> None:
    write_policy(home, default_policy_text())
    async with blockpty.Engine(home) as engine:
        with acting(BOT):
            for env in (
                {"PROMPT_COMMAND": "rm -rf /"}, {"BASH_ENV": "x"}, {"LD_PRELOAD": "./x.so"},
                {"BASH_FUNC_ls%%": "() { rm -rf /; }"}, {"A": "1", "EDITOR": "rm -rf"},
            ):  # fmt: skip
                with pytest.raises(ApprovalRequired):
                    await engine.open("c1", shell="bash", env=env)
            conversation = await engine.open("c1", shell="bash", env={"GREETING": "it's on"})
            assert (await conversation.run('echo "$GREETING"')).output == "it's on\n"


@pytest.mark.needs("bash")
@async_test
async def test_no_operation_reaches_the_terminal_without_a_verdict(home: Path) -> None:
    """Each operation that is not only reading is held against a policy that denies everything."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.exec_interactive("PS1='ready> ' bash --norc")
        await conversation.wait_for("ready> ")
        quiet = await engine.open("c2", shell="bash")
        write_policy(home, "\n".join(["[default]", *(f'{name} = "deny"' for name in DEFAULT_ACTIONS)]))
        recording = home / "x.cast"
        denied: dict[str, Callable[[], Awaitable[object]]] = {
            "open": lambda: engine.open("c3"), "exec_block": lambda: quiet.exec_block("true"),
            "exec_interactive": lambda: quiet.exec_interactive("true"), "run": lambda: quiet.run("true"),
            "send": lambda: conversation.send("x"), "send_keys": lambda: conversation.send_keys("x[UP]"),
            "send_line": lambda: conversation.send_line("x"), "put_file": lambda: quiet.put_file("x", b"y"),
            "get_file": lambda: quiet.get_file("x"),
            "paste": lambda: conversation.paste("x"), "ctrl_c": quiet.ctrl_c, "ctrl_d": quiet.ctrl_d,
            "enter": quiet.enter, "resize": lambda: quiet.resize(90, 30), "end_session": conversation.end_session,
            "enter_shell": conversation.enter_shell, "interrupt": conversation.interrupt, "reset": quiet.reset,
            "kill": quiet.kill, "close": quiet.close, "delete": quiet.delete, "prune": engine.prune,
            "archive": engine.archive, "import_recording": lambda: engine.import_recording(recording),
            "repair": lambda: engine.repair("c1"), "seal": lambda: engine.seal("c1", "k" * 16),
        }  # fmt: skip
        # Who stops agents, or asks for a person, needs no verdict; who lets them go on is a person.
        free = {"halt", "request_user_input"}
        persons: dict[str, Callable[[], Awaitable[object]]] = {
            "release": engine.release, "take_control": quiet.take_control, "release_control": quiet.release_control,
            "approve": lambda: quiet.approve("a1.1", "0" * 64), "deny": lambda: quiet.deny("a1.1", "0" * 64),
        }  # fmt: skip
        changing = {name for name, operation in OPERATIONS.items() if operation.effect is not Effect.READ}
        assert changing == {*denied, *persons, *free}
        with acting(BOT):
            with pytest.raises(ApprovalDenied):
                await until_refused(quiet)
            before = [len(entries(home, name)) for name in ("c1", "c2")]
            for name, call in denied.items():
                with pytest.raises(ApprovalDenied) as problem:
                    await call()
                assert problem.value.details["rule"].startswith("default."), name
            for call in persons.values():
                with pytest.raises(Forbidden):
                    await call()
            for name, begin in zip(("c1", "c2"), before, strict=True):
                assert not [one for one in entries(home, name)[begin:] if one["kind"] in ("input", "resize")]


@pytest.mark.needs("bash")
@async_test
async def test_keys_for_an_editor_are_no_line(home: Path) -> None:
    """What was allowed in a conversation is the same keys again, not all that was typed before them as well."""
    write_policy(home, ASKS.format(seconds=60))
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(ANN):
            await conversation.exec_interactive("cat")
        await until(conversation, foreground="cat", tty="reads_line")
        for times in (1, 0):
            with acting(BOT):
                typing = asyncio.ensure_future(conversation.send("abc"))
            if times:
                await asked(conversation)
                (one,) = (await engine.approvals()).approvals
                assert one["text"] == "abc"
                with acting(ANN):
                    await conversation.approve(one["approval_id"], one["digest"], scope="conversation")
            await typing
        assert (await engine.approvals()).approvals == []


@pytest.mark.needs("bash")
@async_test
async def test_what_has_no_conversation_is_for_a_person_to_do(home: Path) -> None:
    write_policy(home, '[default]\nopen = "ask"\nlifecycle = "ask"\n[[rule]]\nname = "no-zsh"\naction = "deny"\n'
                       'operations = ["prune"]\n')
    async with blockpty.Engine(home) as engine:
        with acting(ANN):
            conversation = await engine.open("c1", shell="bash")
            await conversation.close()
        with acting(BOT):
            for call in (engine.open("c2"), conversation.delete(), engine.repair("c1"), engine.archive()):
                with pytest.raises(ApprovalRequired):
                    await call
            with pytest.raises(ApprovalDenied):
                await engine.prune()
        with acting(ANN):
            await conversation.delete()
        assert not (await engine.list()).conversations
