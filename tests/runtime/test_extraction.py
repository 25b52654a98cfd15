"""A secret that is covered cannot be asked for piece by piece: by searches, by filters or by waits."""

from __future__ import annotations

import asyncio
import itertools
import string
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.runtime.conversation import Conversation
from blockpty.search.backends import index_directory
from blockpty.search.sqlite import SqliteIndex
from tests.support.async_tests import async_test
from tests.support.secret_shapes import SHAPES

pytestmark = pytest.mark.needs("bash")

TOKEN = "ghp_" + "4fK9" * 9
PASSWORD = "zQ7-Vx9Kw2Lp"
KEY = next(shape.secret for shape in SHAPES if "PRIVATE KEY" in shape.text)
ALPHABET = string.ascii_letters + string.digits


async def printed(conversation: Conversation, directory: Path) -> None:
    (directory / "it.txt").write_text(f"one {TOKEN} two\nAWS=1 fine\n-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END")
    result = await conversation.run(f"cat {directory}/it.txt; echo DB_PASSWORD=correct-h0rse plain")
    assert TOKEN not in result.output


def asked() -> list[dict[str, Any]]:
    """Return the ways to ask whether the token goes on with its next character."""
    known = TOKEN[:10]
    found = [{"query": known + one} for one in ALPHABET]
    found += [{"query": text, "mode": "words"} for text in (TOKEN, f"one {TOKEN} two", "h0rse", "correct-h0rse")]
    found += [{"query": text, "mode": "phrase"} for text in (TOKEN, f"one {TOKEN}", "correct-h0rse plain")]
    return found


async def indexed(home: Path, blocks: int) -> None:
    """Return when so many blocks of the conversation are in the index."""
    reader = SqliteIndex(index_directory(home))
    try:
        async with asyncio.timeout(20):
            while reader.positions().of.get("c1", (0, 0))[1] < blocks:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    finally:
        reader.close()


@pytest.mark.parametrize("waits_for_index", [False, True])
@async_test
async def test_no_search_reveals_what_is_redacted(home: Path, tmp_path: Path, waits_for_index: bool) -> None:
    """Indexed or not, and a lookaround that touches nothing of the secret itself tells nothing either."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await printed(conversation, tmp_path)
        await engine.search("nothing")
        if waits_for_index:
            await indexed(home, 1)
        for query in asked():
            assert not (await engine.search(**query)).hits, query
        for line in KEY.splitlines():
            assert len(line) < 12 or not (await engine.search(line[2:12])).hits
        for template in (r"ghp_(?={})", r"one ghp_(?={})", r"(?<=_{})\w", r"ghp_[{}]\w+"):
            hits = set()
            for one in (TOKEN[4], "Z"):
                pattern = template.format(one)
                result = await engine.search(pattern, mode="regex")
                hits.add(tuple((hit.span, hit.snippet) for hit in result.hits))
            assert len(hits) == 1, template
        negative = [await engine.search(rf"ghp_(?!{one})", mode="regex", page_size=1) for one in (TOKEN[4], "Z")]
        assert [hit.span for hit in negative[0].hits] == [hit.span for hit in negative[1].hits]
        assert negative[0].next == negative[1].next
        # What is not covered is found, also beside a secret and on both sides of one.
        for query in (
            {"query": "one ghp_"},
            {"query": "two one", "mode": "words"},
            {"query": r"=1\b", "mode": "regex"},
        ):
            result = await engine.search(**query)
            assert len(result.hits) == 1 and TOKEN not in result.hits[0].snippet, query
        assert len((await engine.search("***")).hits) == 0


@async_test
async def test_no_wait_reveals_what_is_redacted(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await printed(conversation, tmp_path)
        matches: list[Any] = [TOKEN[:10], TOKEN, "correct-h"]
        matches += [
            {"regex": pattern} for pattern in (TOKEN[:6], rf"ghp_(?={TOKEN[4]})", rf"(?<=_{TOKEN[4]})\w", "-h0")
        ]
        matches += [{"screen": pattern} for pattern in (TOKEN[:6], rf"ghp_(?={TOKEN[4]})")]
        for view in ("text", "ansi", "raw"):
            for match in matches:
                if not (isinstance(match, dict) and "screen" in match and view != "text"):
                    found = await conversation.wait_for(match, timeout_ms=0, from_cursor=0, view=view)
                    assert not found.matched and TOKEN not in found.text, (view, match)
        for match in ("one ghp_****", {"regex": r"one ghp_\*+ two$"}, {"screen": r"one ghp_\*+ two"}):
            assert (await conversation.wait_for(match, timeout_ms=0, from_cursor=0)).matched
        assert (await conversation.verify()).clean


@async_test
async def test_a_wait_sees_a_secret_redacted_that_comes_while_it_waits(home: Path) -> None:
    """Key by key; what is no secret in the end is seen when that is known."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        slowly = 'for ((i = 0; i < ${#t}; i++)); do printf %s "${t:i:1}"; sleep 0.01; done'
        begin = (await conversation.exec_block(f"t={TOKEN[:20]} t+={TOKEN[20:]}; {slowly}; echo ' end'")).cursor
        match = [{"regex": "f?K9.* end"}, TOKEN[4:8], "* end"]
        found = await conversation.wait_for(match, timeout_ms=20_000, from_cursor=begin)
        assert (found.matched, found.index) == (True, 2)
        await conversation.wait_for({"token": "PROMPT"})
        begin = (await conversation.exec_block("printf 'token=ab'; sleep 0.2; echo ' plain'; read -r line")).cursor
        found = await conversation.wait_for("plain", timeout_ms=20_000, from_cursor=begin)
        assert found.matched
        await conversation.enter()
        await conversation.wait_for({"token": "PROMPT"})
        begin = (await conversation.exec_block("printf 'key=abc'; read -r line")).cursor
        found = await conversation.wait_for("key=***", timeout_ms=20_000, from_cursor=begin)
        assert found.matched
        assert (await conversation.verify()).clean


@async_test
async def test_no_filter_reveals_what_is_redacted(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await printed(conversation, tmp_path)
        assert not (await conversation.blocks("correct-h0")).blocks
        assert len((await conversation.blocks("DB_PASSWORD=")).blocks) == 1


@async_test
async def test_who_may_see_them_finds_them(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home, redact=False) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run(f"echo {TOKEN} DB_PASSWORD=correct-h0rse")
        assert (await engine.search(TOKEN)).hits
        assert (await conversation.blocks("correct-h0")).blocks
        assert (await conversation.wait_for({"regex": TOKEN + "(?= DB)"}, from_cursor=0)).matched


async def _screens(conversation: Conversation, at: int) -> str:
    shown = [await conversation.screen(format=name, at=at) for name in ("text", "ansi", "json")]
    return "\n".join(one.content for one in shown)


def _length_shown(secret: str, text: str) -> int:
    """Return how long the longest piece of a secret in a text is."""
    spans = itertools.combinations(range(len(secret) + 1), 2)
    return max((end - begin for begin, end in spans if secret[begin:end] in text), default=0)


@async_test
async def test_no_screen_shows_a_part_of_a_secret_that_is_being_drawn(home: Path, tmp_path: Path) -> None:
    """Asked for at each cursor; the last column, where a wrap is pending, included."""
    async with blockpty.Engine(home) as engine:
        # No name of a directory on the screen: two letters of the secret may be in it.
        conversation = await engine.open("c1", shell="bash", cwd=tmp_path, cols=40, rows=5)
        await conversation.run("PS1='$ '; clear")
        (tmp_path / "it.txt").write_text(f"{'x' * 20} {TOKEN} two\nDB_PASSWORD={PASSWORD} plain\n")
        await conversation.run("cat it.txt")
        stream = (conversation.directory / "stream" / f"{0:020d}").read_bytes()
        for secret, known in ((TOKEN, len("ghp_")), (PASSWORD, 1)):
            begin = stream.index(secret.encode())
            for at in range(begin + 1, begin + len(secret) + 1):
                shown = await _screens(conversation, at)
                assert _length_shown(secret, shown) <= known, (at - begin, shown)
        # Over what stands there already.
        begin = (await conversation.run("printf '\\e[3;1H'; cat it.txt")).block.span[0]
        for at in range(begin, conversation.cursor):
            assert _length_shown(TOKEN[4:], (await conversation.screen(at=at)).content) <= 1, at
        # A wait sees the same.
        for match in ({"screen": TOKEN[:5]}, {"screen": f"PASSWORD={PASSWORD[0]}"}):
            assert not (await conversation.wait_for(match, timeout_ms=0, from_cursor=0)).matched
        begin = (await conversation.exec_block(f"t={TOKEN}; printf %s ${{t:0:9}}; read -r _")).cursor
        await conversation.wait_for({"screen": r"ghp_\*\*\*\*\*$"}, from_cursor=begin, timeout_ms=20_000)
        assert TOKEN[:5] not in (await conversation.screen()).content
        assert (await conversation.verify()).clean


@pytest.mark.parametrize("lines", [0, 1, 2, 30])
@async_test
async def test_no_screen_shows_the_rest_of_a_secret_whose_beginning_scrolled_off(
    home: Path, tmp_path: Path, lines: int
) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=tmp_path, cols=40, rows=5)
        await conversation.run("PS1='$ '")  # bash draws a long one again over what stands above it
        for number, text in enumerate((f"{'x' * 28} {TOKEN} two", f"{'x' * 20} DB_PASSWORD={TOKEN[4:]}-h0rse plain")):
            (tmp_path / "it.txt").write_text(text + "\n")
            for below in range(5):
                await conversation.run(f"clear; cat it.txt{'; echo' * below}")
                shown = (await conversation.screen(scrollback=lines)).content
                assert _length_shown(TOKEN[4:] + "-h0rse", shown) <= 1, (number, below, shown)
            await conversation.run("clear; cat it.txt")
            for cols in (20, 10, 40):
                await conversation.resize(cols, 5)
                shown = (await conversation.screen(scrollback=lines)).content
                assert _length_shown(TOKEN[4:] + "-h0rse", shown) <= 1, (number, cols, shown)


@async_test
async def test_no_hash_of_a_screen_reveals_what_is_redacted(home: Path) -> None:
    """Who knows the rest of the screen could try every value of a secret against a hash of all of it."""
    hashes = set()
    async with blockpty.Engine(home) as engine:
        for name, pin in (("c1", "correct-1234"), ("c2", "correct-5678")):
            conversation = await engine.open(name, shell="bash")
            await conversation.run(f"PS1=; clear; echo DB_PASSWORD={pin} plain")
            screens = [await conversation.screen(format="json"), await conversation.screen()]
            assert '"text":"' + screens[1].hash.split("-")[0] in screens[0].content.replace(" ", "")
            hashes.add(screens[0].hash)
            # A wait compares the same.
            at = screens[0].cursor
            found = await conversation.wait_for({"changed": screens[0].hash}, timeout_ms=0, from_cursor=at)
            assert not found.matched
            assert (await conversation.verify()).clean
    assert len(hashes) == 1
