"""Every hostile set-up: the same commands, the same blocks, or a stated reason why not."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.asyncio_support import async_test
from tests.scenarios.rc.commands import EXPECTED, play
from tests.scenarios.rc.table import SETUPS, Setup
from tests.scenarios.stage import open_stage


def _cases() -> list[object]:
    return [
        pytest.param(setup, id=f"{setup.shell}: {setup.title}", marks=[pytest.mark.needs(setup.shell)])
        for setup in SETUPS
    ]


def _write(home: Path, setup: Setup) -> None:
    (home.parent / "user" / f".{setup.shell}rc").write_text(setup.rc + "\n")


@pytest.mark.parametrize("setup", _cases())
@async_test
async def test_set_up(setup: Setup, home: Path) -> None:
    _write(home, setup)
    async with open_stage(home, setup.shell) as stage:
        assert await play(stage, setup.noise) == setup.change(EXPECTED[setup.shell])
        status = await stage.conversation.status()
        assert (status.integrity_reason or "ok").startswith(setup.reason or "ok")
