"""`blockpty.sync`: the same methods without asyncio, Ctrl-C in the calling thread, and threads."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import blockpty
from blockpty import PROMPT, sync
from blockpty.control.principals import Scope
from blockpty.errors import BadRequest, NotFound

pytestmark = pytest.mark.needs("bash")


@pytest.fixture
def engine(home: Path) -> Iterator[sync.Engine]:
    with sync.Engine(home) as engine:
        yield engine


def live(engine: sync.Engine) -> dict[str, bool]:
    return {one.conversation_id: one.live for one in engine.list().conversations}


def test_a_conversation_without_asyncio(engine: sync.Engine) -> None:
    with engine.open("c1", shell="bash", cwd="/") as conversation:
        assert repr(conversation) == "<Conversation c1 idle />"
        assert conversation.opened is not None and conversation.id == "c1"
        assert conversation.run("echo hi", timeout=30).output == "hi\n"
        conversation.exec_interactive("read -r name; echo Hello, $name.")
        conversation.send("Ada\r")
        assert conversation.expect(blockpty.Regex(r"Hello, (\w+)")).groups == {"1": "Ada"}
        conversation.wait_for(PROMPT)
        with pytest.raises(blockpty.CommandFailed):
            conversation.run("false", check=True)
        with pytest.raises(NotFound):
            conversation.block("b99")
        block = conversation.blocks().blocks[0]
        assert conversation.output_path(block).read_text("utf-8") == "hi\n"
        assert conversation.output_path(block).parent.parent == conversation.directory
        assert engine.conversation("c1").run("echo again").output == "again\n"
        assert conversation.verify().clean
    assert live(engine) == {"c1": False}


def test_streams_are_plain_iterators(engine: sync.Engine) -> None:
    with engine.open("c1", shell="bash") as conversation:
        conversation.exec_block("echo one; read -r x; echo two")
        seen = []
        for line in conversation.lines():
            seen.append(line)
            if line == "one":
                conversation.send("\r")
        assert [line for line in seen if line] == ["one", "two"]
        types = [event.type for event in conversation.events(follow=False)]
        assert "agent_block_end" in types
        # A loop that is left ends what it read from.
        for event in conversation.events():
            if event.type == "agent_block_end":
                break
        pieces = conversation.follow(0)
        assert next(pieces).cursor == 0
        pieces.close()  # type: ignore[attr-defined]
        assert b"two" in b"".join(moment.data for moment in conversation.replay(speed=0))


def test_a_server_without_asyncio(home: Path) -> None:
    with sync.Client(home) as client, client.open("c1", shell="bash") as conversation:
        assert conversation.run("echo hi").output == "hi\n"
        assert list(conversation.lines()) == ["hi"]
        assert client.home == home
    with sync.Client(home) as client:
        assert [one.live for one in client.list().conversations] == [False]


def test_ctrl_c_cancels_the_call_and_nothing_else(engine: sync.Engine) -> None:
    with engine.open("c1", shell="bash") as conversation:
        conversation.exec_block("read -r x; echo got $x")

        def interrupt() -> None:
            for event in conversation.events():
                if event.type == "wait_begin" and "never" in str(event.fields["match"]):
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                    return

        interrupting = threading.Thread(target=interrupt)
        # A shell starts what is to run in the background with the signal ignored, and so Python keeps it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            interrupting.start()
            with pytest.raises(KeyboardInterrupt):
                conversation.wait_for("never", timeout=60)
        finally:
            signal.signal(signal.SIGINT, before)
        interrupting.join()
        conversation.send("it\r")
        assert conversation.expect("got it").matched
        reasons = [event.fields["reason"] for event in conversation.events(follow=False) if event.type == "wait_end"]
        assert "cancelled" in reasons
        conversation.wait_for(PROMPT)
        assert conversation.run("echo on").output == "on\n"


def test_several_threads_use_one_engine(engine: sync.Engine) -> None:
    outputs: dict[int, str] = {}

    def work(number: int) -> None:
        with engine.open(shell="bash") as conversation:
            outputs[number] = conversation.run(f"echo {number}").output

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {number: f"{number}\n" for number in range(6)}


def test_a_running_event_loop_of_the_caller_is_no_hindrance(home: Path) -> None:
    async def main() -> str:
        return blockpty.run("echo inside", home=home).output

    assert asyncio.run(main()) == "inside\n"


def test_a_call_that_would_wait_for_itself_is_refused(engine: sync.Engine) -> None:
    async def inside() -> None:
        engine.list()

    with pytest.raises(BadRequest, match="would wait for the event loop that it is made on"):
        engine._thread.call(inside())
    assert live(engine) == {}


def test_the_principal_of_the_caller_is_that_of_the_call(engine: sync.Engine) -> None:
    with engine.open("c1", shell="bash") as conversation:
        with blockpty.acting(blockpty.Principal("Ada", Scope.ADMIN, types_as="user")):
            conversation.send("echo typed\r")
        conversation.expect("typed", from_cursor=0)
        conversation.wait_for(PROMPT)
        assert conversation.blocks().blocks[0].author == "user"


def test_after_its_end_nothing_can_be_called(home: Path) -> None:
    engine = sync.Engine(home)
    conversation = engine.open("c1", shell="bash")
    engine.close()
    engine.close()
    for call in (engine.list, conversation.status):
        with pytest.raises(BadRequest, match="is closed"):
            call()
    assert not [thread for thread in threading.enumerate() if thread.name == "blockpty"]
    sync.Engine(home).close()


@pytest.mark.parametrize("ending", ["", "; del engine, conversation", "; raise SystemExit(0)"])
def test_a_program_that_never_closes_leaves_no_shell(ending: str, home: Path) -> None:
    program = f"import blockpty; engine = blockpty.sync.Engine(); conversation = engine.open('c1'){ending}"
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    with sync.Engine(home) as engine:
        assert live(engine) == {"c1": False}


def test_one_command(home: Path) -> None:
    result = blockpty.run("echo $PWD $THING", cwd="/", env={"THING": "x"}, shell="bash")
    assert (result.output, result.exit_status, result.ok) == ("/ x\n", 0, True)
    with pytest.raises(blockpty.CommandFailed, match="'false' ended with exit status 1"):
        blockpty.run("false", check=True)
    ended = blockpty.run("echo begun; sleep 1000", timeout=0.3)
    assert ended.timed_out and ended.output == "begun\n" and not ended.ok
    assert blockpty.run("read -r x").reason == "input"
    with sync.Engine(home) as engine:
        assert [one.live for one in engine.list().conversations] == [False] * 4


def test_ctrl_c_ends_one_command(home: Path) -> None:
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import blockpty; print(blockpty.run('sleep 1000', timeout=100))"
    )
    running = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    with sync.Engine(home) as engine:
        while not [one for one in engine.list().conversations if one.running is not None]:
            pass
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
        assert said.splitlines()[-1] == "KeyboardInterrupt" and running.returncode != 0
        assert [one.live for one in engine.list().conversations] == [False]


def test_arguments_are_checked_when_it_is_made(home: Path) -> None:
    with pytest.raises(BadRequest, match="durability"):
        sync.Engine(home, durability="no")
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        sync.Engine(home, colour="red")  # type: ignore[call-arg]
