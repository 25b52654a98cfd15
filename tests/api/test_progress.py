"""Progress: what operations say of themselves, and how it comes to who calls them through a server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import blockpty
from blockpty.api.progress import Progress
from tests.support.async_tests import async_test
from tests.support.http_client import http, serving
from tests.support.slow_verify import slow_verify


def test_it_grows_over_the_parts_of_a_work_and_never_shrinks() -> None:
    progress = Progress()
    progress.begin("verify", 10)
    progress.reach(10)
    progress.begin("verify", 4)
    progress.reach(3)
    progress.reach(1)
    assert progress.to_dict() == {"what": "verify", "done": 13, "total": 14}
    progress.take({"what": "verify", "done": 5, "total": None})
    progress.take({"what": 5})
    assert progress.to_dict() == {"what": "verify", "done": 13, "total": None}


def test_it_is_that_of_the_caller_and_of_no_other() -> None:
    assert Progress.wanted() is None
    with Progress() as outer:
        with Progress() as inner:
            assert Progress.of_caller() is inner
        assert Progress.of_caller() is outer
    assert Progress.wanted() is None and Progress.of_caller() is not outer


@pytest.mark.needs("bash")
@async_test
async def test_operations_say_how_far_they_are(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine, engine.open("c1", shell="bash") as conversation:
        await conversation.run("seq 1 20000")
        with Progress() as found:
            # Nothing is indexed yet, so all of it is looked through.
            assert not (await engine.search("zq+x", mode="regex", timeout=60)).hits
        assert found.what == "search" and found.total is not None and 100_000 < found.done <= found.total
        with Progress() as verified:
            assert (await conversation.verify()).clean
        assert verified.what == "verify" and verified.done == verified.total
        for style in ("cast", "typescript", "text", "jsonl", "markdown", "html"):
            with Progress() as exported:
                result = await conversation.export(style)
            assert exported.what == "export" and exported.total == result.span[1]
            # What only lists blocks has nothing to say of what stands between them.
            assert exported.total - 1000 < exported.done <= exported.total
        recording = tmp_path / "recording.cast"
        recording.write_text((await conversation.export("cast", max_bytes=1 << 26)).data or "")
        with Progress() as imported:
            await engine.import_recording(recording, "c2")
        size = recording.stat().st_size
        # The first line is read before.
        assert imported.what == "import" and imported.total == size and size - 500 < imported.done < size


@pytest.mark.needs("bash")
@async_test
async def test_it_comes_through_a_server(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(home) as url, blockpty.Client(home) as local, blockpty.Client(home, url=url) as remote:
        await local.open("c1", shell="bash")
        for client in (local, remote):
            with slow_verify(monkeypatch) as going:
                with Progress() as progress:
                    task = asyncio.ensure_future(client.verify("c1"))
                while progress.done < 5:  # noqa: ASYNC110  (nothing tells)
                    await asyncio.sleep(0.01)
                assert progress.to_dict() == {"what": "verify", "done": 5, "total": 8} and not task.done()
                going.set()
                assert (await task).clean
            # An error is one, also behind lines of progress; and without them.
            with Progress(), pytest.raises(blockpty.NotFound):
                await client.verify("missing")
        async with http(home, url) as plain:
            # Who does not ask for lines gets one object, as always.
            answer = await plain.post("/v1/conversations/c1/verify", json={})
            assert answer.headers["content-type"] == "application/json" and answer.json()["clean"]
            with slow_verify(monkeypatch) as going:
                headers = {"Accept": "application/x-ndjson"}
                async with plain.stream("POST", "/v1/conversations/c1/verify", json={}, headers=headers) as lines:
                    found = []
                    async for line in lines.aiter_lines():
                        found.append(json.loads(line))
                        going.set()
            assert found[0] == {"progress": {"what": "verify", "done": 5, "total": 8}}
            assert found[-1]["clean"] and lines.headers["content-type"] == "application/x-ndjson"
        await (await local.conversation("c1")).close()


def test_it_comes_without_asyncio(home: Path) -> None:
    with blockpty.sync.Engine(home) as engine, engine.open("c1", shell="sh") as conversation:
        with Progress() as progress:
            assert conversation.verify().clean
        assert progress.done == progress.total
