"""Every operation by which a shell or a record begins, ends or is changed is audited, from every caller."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import blockpty
from blockpty.control.principals import Principal, Scope, acting
from blockpty.errors import ArchiveUnreachable, Busy, NotFound
from blockpty.ops.operation import Effect
from blockpty.ops.table import OPERATIONS
from tests.support.async_tests import async_test

ANN = Principal("ann", Scope.ADMIN, types_as="user")


async def all_of_them(engine: blockpty.Engine, place: Path) -> None:
    conversation = await engine.open("c1", shell="bash")
    with pytest.raises(Busy):
        await engine.open("c1")
    session = await conversation.exec_interactive("cat")
    await conversation.end_session(session.session_id)
    await conversation.reset()
    await engine.seal("c1", "0123456789abcdef")
    await conversation.kill(signal="KILL")
    await conversation.close()
    await engine.repair("c1")
    with pytest.raises(ArchiveUnreachable):
        await engine.archive("c1")
    recording = place / "demo.cast"
    recording.write_text(json.dumps({"version": 2, "width": 80, "height": 24}) + '\n[0.1, "o", "hi"]\n')
    await engine.import_recording(recording, "c2")
    await engine.prune(keep_days=30)
    await conversation.delete()
    with pytest.raises(NotFound):
        await engine.repair("c1")


@pytest.mark.needs("bash")
@async_test
async def test_nothing_is_left_out(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BLOCKPTY_ARCHIVE_URL", raising=False)
    async with blockpty.Engine(home) as engine:
        with acting(ANN):
            await all_of_them(engine, tmp_path)
        found = await engine.audit(verify=True)
        entries = [one for one in reversed(found.entries) if one["type"] == "lifecycle"]
        assert found.findings == []
    expected = {name for name, operation in OPERATIONS.items() if operation.effect is Effect.LIFECYCLE}
    assert {one["operation"] for one in entries} == expected
    assert {one["principal"] for one in entries} == {"ann"}
    outcomes = [(one["operation"], one["conversation_id"], one["outcome"]) for one in entries]
    assert outcomes[:2] == [("open", "c1", "done"), ("open", "c1", "busy")]
    assert ("archive", "c1", "archive_unreachable") in outcomes
    assert outcomes[-1] == ("repair", "c1", "not_found")
