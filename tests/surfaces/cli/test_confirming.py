"""Confirmation: asked on a terminal, and only a yes begins."""

from __future__ import annotations

import sys
from pathlib import Path

import pexpect
import pytest

import blockpty
from tests.support.async_tests import async_test

pytestmark = pytest.mark.needs("bash")


@async_test
async def test_only_a_yes_deletes(home: Path) -> None:
    async with blockpty.Client(home) as client:
        await (await client.open("c1", shell="bash")).close()

        def delete(answer: str) -> tuple[int | None, str]:
            asked = pexpect.spawn(
                sys.executable, ["-m", "blockpty", "--home", str(home), "delete", "c1"], encoding="utf-8", timeout=60
            )
            asked.expect("Delete c1 with its transcript")
            asked.sendline(answer)
            asked.expect(pexpect.EOF)
            asked.close()
            return asked.exitstatus, asked.before or ""

        for answer in ("", "n"):
            assert delete(answer)[0] == 130
        foreseen = await (await client.conversation("c1")).delete(dry_run=True)
        assert foreseen.freed_bytes > 0
        assert [one.conversation_id for one in (await client.list()).conversations] == ["c1"]
        assert (await client.prune(keep_days=0, dry_run=True)).deleted in ([], ["c1"])
        assert (await client.prune(keep_total_mb=0, dry_run=True)).deleted == ["c1"]
        assert [one.conversation_id for one in (await client.list()).conversations] == ["c1"]
        assert delete("y")[0] == 0
        assert (await client.list()).conversations == []
