"""A page that stays open while commands run and others print: what it keeps does not grow with what it was sent."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from blockpty import Client
from tests.support.browser import Served, sign_in, skip_where_missing
from tests.support.profile import LONG

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = [
    skip_where_missing(),
    pytest.mark.needs("bash"),
    pytest.mark.slow,
    pytest.mark.skipif(not LONG, reason="keeps a page open for 12,100 commands; BLOCKPTY_TORTURE=long does it"),
    pytest.mark.timeout(3600),
]

# Commands between two looks at the memory.
COMMANDS = int(os.environ.get("BLOCKPTY_PAGE_COMMANDS", "2000"))
MB = 1_000_000
MOST = 150 * MB
# What a page compiles and keeps at hand grows for a while. What it keeps of each block would be more than this.
GROWTH = 6 * MB
SAMPLES = 6
# Commands before the page is opened, which then has so many blocks.
FIRST = 100
BUSY = "while :; do seq 1 200; read -t 0.5; done <> <(:)"


class Agent:
    """Runs one command after the other in a conversation, in a thread: Playwright has the loop of this one."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.count = 0

    def go_on(self, count: int) -> str:
        """Run so many; return what the last one prints last."""
        done = threading.Thread(target=lambda: asyncio.run(self._run(count)))
        done.start()
        done.join()
        return f"done-{self.count}"

    async def _run(self, count: int) -> None:
        async with Client(self._home, start=False) as client:
            conversation = await client.conversation("c1")
            for _ in range(count):
                self.count += 1
                await conversation.run(f"seq {self.count} {self.count + 300}; echo done-{self.count}")


def test_a_page_beside_five_busy_conversations_does_not_grow(
    context: BrowserContext, served: Served, home: Path
) -> None:
    others = [f"c{number}" for number in range(2, 6)]
    for name in others:
        served.cli("open", name, "--shell", "bash")
        served.cli("exec-block", name, BUSY)
    agent, used = Agent(home), []
    agent.go_on(FIRST)
    watched = sign_in(context, served)
    watched.page.locator(".side .entry", has_text="c1").click()
    watched.page.wait_for_selector(".screen-head .chip.run")
    inside = context.new_cdp_session(watched.page)
    try:
        for _ in range(SAMPLES):
            last = agent.go_on(COMMANDS)
            watched.until(lambda last=last: last in watched.screen(), "the page is up to date")
            watched.until_script("document.querySelectorAll('.block.run').length === 0")
            inside.send("HeapProfiler.collectGarbage")
            used.append(inside.send("Runtime.getHeapUsage")["usedSize"])
            print(f"{agent.count} commands, {watched.page.locator('.block').count()} blocks, {used[-1] / MB:.1f} MB")
    finally:
        for name in others:
            served.cli("close", name)
    assert agent.count == FIRST + SAMPLES * COMMANDS > 400
    assert watched.page.locator(".block").count() <= 400, "the earliest are released"
    assert max(used) < MOST, used
    assert used[-1] - min(used[SAMPLES // 2 :]) < GROWTH, used
    # They are still to be had.
    first = "Number(document.querySelector('.block').id.slice(1))"
    before = watched.page.evaluate(first)
    watched.page.locator(".blocks").evaluate("(box) => { box.scrollTop = 0 }")
    watched.until_script(f"{first} < {before} - 50")
    assert watched.complaints == []
