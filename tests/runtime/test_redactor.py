"""Output holds no secret, by whatever way and wherever it is cut; the files hold what was printed."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import shlex
from contextlib import aclosing
from pathlib import Path

import pytest

import blockpty
from blockpty.errors import Forbidden
from blockpty.runtime.conversation import Conversation
from blockpty.runtime.redactor import Redactor
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader
from tests.support.async_tests import async_test
from tests.support.profile import one_in_turn
from tests.support.secret_shapes import SHAPES, Shape

pytestmark = pytest.mark.needs("bash")

TOKEN = "ghp_" + "4fK9" * 9
PASSWORD = "correct-h0rse"


def pieces(shape: Shape) -> list[str]:
    """Return the parts of a secret that must not be seen: its lines, without the short ones."""
    return [line for line in re.split(r"\\n|\n", shape.secret) if len(line) > 3]


def assert_none(text: str, shapes: tuple[Shape, ...] = SHAPES) -> None:
    seen = [shape.name for shape in shapes for piece in pieces(shape) if piece in text]
    assert not seen


async def printed(conversation: Conversation, directory: Path) -> str:
    """Print every shape, each colours and all, and return the block."""
    path = directory / "shapes.txt"
    path.write_text("".join(shape.text for shape in SHAPES), "utf-8")
    result = await conversation.run(f"cat {shlex.quote(str(path))}")
    assert result.block.exit_status == 0
    assert_none(result.output)
    assert result.output.count("printed ") == sum("printed " in shape.before for shape in SHAPES)
    return result.block.block_id


@async_test
async def test_a_read_shows_none_wherever_it_begins_and_ends(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        block_id = await printed(conversation, tmp_path)
        whole = (await conversation.read(block_id=block_id)).data
        for number, view in enumerate(("raw", "ansi", "text", "rendered")):
            assert_none((await conversation.read(block_id=block_id, view=view)).data)
            for size in one_in_turn(number, (3, 40, 300)):
                together, cursor = "", (await conversation.block(block_id)).block.span[0]
                while not (found := await conversation.read(cursor, block_id=block_id, max_bytes=size, view=view)).eof:
                    together += found.data
                    cursor = max(found.cursor, cursor + 1)  # a control sequence may be larger than the piece
                    if len(together) > 100 * size:
                        break
                if view == "text" and size > 4:
                    assert whole.startswith(together)
                assert_none(together)
        exact = await conversation.read(block_id=block_id, view="raw")
        assert exact.data_b64 is not None
        assert_none(base64.b64decode(exact.data_b64).decode())
        assert TOKEN not in whole


@async_test
async def test_blocks_events_screens_and_exports_show_none(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cols=100, rows=40)
        await conversation.start_capture()
        await printed(conversation, tmp_path)
        result = await conversation.run(f"echo {TOKEN}; export DB_PASSWORD={PASSWORD}")
        assert TOKEN not in result.block.cmd and PASSWORD not in result.block.cmd
        assert len(result.block.cmd) == len(f"echo {TOKEN}; export DB_PASSWORD={PASSWORD}")
        texts = [json.dumps((await conversation.blocks()).to_dict())]
        async with aclosing(conversation.events(0, follow=False)) as events:  # type: ignore[type-var]
            texts += [json.dumps(event.to_dict("c1")) async for event in events]
        for style in ("text", "json", "ansi", "html", "svg", "agent"):
            seen = await conversation.screen(format=style, scrollback=200)
            texts.append(seen.content.replace("\n", "") if style == "text" else seen.content)
        for style in ("cast", "cast3", "text", "html", "markdown", "jsonl"):
            texts.append((await conversation.export(style, max_bytes=1 << 20)).data or "")
        script = await conversation.export("typescript")
        texts.append(Path(str(script.path)).read_text("utf-8", "replace"))
        texts.append(Path((await conversation.stop_capture()).capture_file).read_text("utf-8"))
        for text in texts:
            assert_none(text)
            assert TOKEN not in text and PASSWORD not in text
        assert (await conversation.verify()).clean
        stored = b"".join(path.read_bytes() for path in sorted((conversation.directory / "stream").iterdir()))
        assert TOKEN.encode() in stored
        assert SHAPES[0].secret.encode() in stored


@async_test
async def test_a_wait_matches_and_returns_redacted_output(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.exec_block(f"echo 'password: {PASSWORD}'")
        found = await conversation.wait_for({"regex": r"password: (?P<it>\S+)"}, timeout_ms=20_000)
        covered = "*" * len(PASSWORD)
        assert found.matched and found.match_text == f"password: {covered}"
        assert found.groups == {"1": covered, "it": covered} or found.groups == {"it": covered}
        await conversation.wait_for({"token": "PROMPT"})
        # Without the word before it nothing in the match says that it is one; the record does.
        found = await conversation.wait_for({"regex": r"(?<=word: )\S+"}, from_cursor=0)
        assert found.match_text == covered
        events = [event async for event in conversation.events(0, follow=False)]
        ends = [json.dumps(dict(event.fields)) for event in events if event.type == "wait_end"]
        assert ends and not [end for end in ends if PASSWORD in end]
        # The last text before an end, cut inside a secret.
        await conversation.run("printf 'ghp_%s\\n' $(printf 'k3Y%.0s' {1..3000})")
        found = await conversation.wait_for("never printed", timeout_ms=0, from_cursor=0)
        assert not found.matched and "k3Y" not in found.text
        assert (await conversation.verify()).clean


@async_test
async def test_an_engine_that_may_shows_them(home: Path) -> None:
    async with blockpty.Engine(home, redact=False) as engine:
        conversation = await engine.open("c1", shell="bash")
        result = await conversation.run(f"echo {TOKEN}")
        assert result.output == f"{TOKEN}\n" and TOKEN in result.block.cmd
        assert TOKEN in (await conversation.screen()).content
        nonces = conversation.live.mask.nonces
        raw = await conversation.read(0, view="raw")
        assert nonces and not [nonce for nonce in nonces if nonce in raw.data]


@async_test
async def test_an_export_shows_them_only_when_it_is_asked_to_and_may(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", persist=True)
        await conversation.run(f"echo {TOKEN}")
        with pytest.raises(Forbidden, match="redacted output only"):
            await conversation.export("text", redact=False)
        for redact in (None, True):
            assert TOKEN not in ((await conversation.export("text", redact=redact)).data or "")
    async with blockpty.Engine(home, allow_uncovered=True) as engine:
        conversation = await engine.conversation("c1")
        nonces = conversation.live.mask.nonces
        for style in ("cast", "text", "html", "markdown", "jsonl"):
            assert TOKEN not in ((await conversation.export(style)).data or "")
            data = (await conversation.export(style, redact=False)).data or ""
            assert TOKEN in data and nonces and not [nonce for nonce in nonces if nonce in data]
        assert TOKEN not in (await conversation.read(0)).data
        await conversation.close()
    async with blockpty.Engine(home, redact=False) as engine:
        conversation = await engine.conversation("c1")
        assert TOKEN in ((await conversation.export("text", redact=False)).data or "")
        assert TOKEN not in ((await conversation.export("text", redact=True)).data or "")


@pytest.mark.parametrize(
    "shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh", "fish")]
)
@async_test
async def test_a_secret_that_is_typed_key_by_key_leaves_nowhere(home: Path, shell: str) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell)
        received: list[str] = []

        async def follow() -> None:
            async with aclosing(conversation.events(0)) as events:  # type: ignore[type-var]
                async for event in events:
                    received.append(json.dumps(dict(event.fields)))

        task = asyncio.ensure_future(follow())
        for key in f"export MY_TOKEN={TOKEN}":
            await conversation.send(key, author="user")
        await conversation.enter()
        await conversation.wait_for({"token": "PROMPT"}, timeout_ms=20_000)
        await conversation.run("echo done")
        task.cancel()
        events = [event async for event in conversation.events(0, follow=False)]
        inputs = [event for event in events if event.type == "input" and event.fields["author"] == "user"]
        # Only the size of a key is reported: nothing that could be put together.
        assert len(inputs) >= len(TOKEN)
        assert not [event for event in inputs if set(event.fields) - {"author", "principal", "bytes", "submit"}]
        blocks = (await conversation.blocks()).to_dict()
        texts = [*received, json.dumps(blocks), *[json.dumps(dict(event.fields)) for event in events]]
        texts += [(await conversation.read(0, view=view)).data for view in ("raw", "ansi", "text", "rendered")]
        for style in ("cast", "text", "html", "markdown", "jsonl"):
            texts.append((await conversation.export(style)).data or "")
        texts += [(await conversation.screen()).content, (await conversation.screen(format="json")).content]
        for text in texts:
            assert TOKEN[4:16] not in text and TOKEN[-12:] not in text
        typed = "".join([json.loads(text).get("data") or "" for text in received])
        assert TOKEN[4:16] not in typed


ASKS = {
    "read -s": "read -rs -p 'Password: ' p; echo; echo ${#p} there",
    "getpass": "python3 -c 'import getpass; print(len(getpass.getpass()), \"there\")'",
    "stty": "stty -echo; printf 'PIN: '; IFS= read -r p; stty echo; echo ${#p} there",
    "nested": 'bash --norc -c "bash -c \\"read -rs p; echo; echo \\\\\\${#p} there\\""',
}
TYPED = "n3ver-Rec0rded?"


@pytest.mark.parametrize("asks", [*ASKS])
@async_test
async def test_what_is_typed_at_a_password_prompt_is_in_no_file_however_it_is_typed(home: Path, asks: str) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        for way in ("send", "user", "paste", "keys"):
            session = await conversation.exec_interactive(ASKS[asks])
            assert (await conversation.wait_for("never", timeout_ms=20_000)).reason == "password"
            if way == "keys":
                await conversation.send_keys(f"{TYPED}[ENTER]")
            elif way == "paste":
                await conversation.paste(TYPED)
                await conversation.enter()
            else:
                author = "user" if way == "user" else "agent"
                await conversation.send(f"{TYPED}\r", session_id=session.session_id, author=author)
            found = await conversation.wait_for({"regex": r"(\d+) there"}, timeout_ms=20_000)
            assert found.groups == {"1": str(len(TYPED))}
            await conversation.wait_for({"token": "PROMPT"})
        inputs = [event async for event in conversation.events(0, follow=False) if event.type == "input"]
        hidden = [dict(event.fields) for event in inputs if event.fields.get("redacted")]
        assert len(hidden) >= 4 and not [one for one in hidden if "bytes" in one or "data" in one]
        assert (await conversation.verify()).clean
    forms = [TYPED.encode(), TYPED.encode("utf-16-le"), base64.b64encode(TYPED.encode())[:16], TYPED[1:].encode()]
    for path in home.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with contextlib.suppress(FileNotFoundError):  # the host leaves, and takes its own with it
                content = path.read_bytes()
                assert not [form for form in forms if form in content], path


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name.replace(" ", "_"))
def test_a_range_is_redacted_as_the_whole_is(tmp_path: Path, shape: Shape) -> None:
    text = ("some text before it\r\n" * 3 + shape.text.replace("\n", "\r\n") + "and after it\r\n").encode()
    (tmp_path / f"{0:020d}").write_bytes(text)
    stream, redactor = StreamReader(tmp_path), Redactor(Mask())
    whole = redactor.read(stream, 0, len(text))
    assert_none(whole.decode(), (shape,))
    for begin in range(0, len(text), 3):
        for length in (1, 20):
            assert redactor.read(stream, begin, length) == whole[begin : begin + length]
    stream.close()
