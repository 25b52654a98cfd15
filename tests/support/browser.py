"""A real browser on the page of a real server, in a process of its own that can be killed."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from blockpty.surfaces.http.page import BUILT
from tests.support.cli_calls import call
from tests.support.ports import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 30_000
# A slow machine and a network far away, for races of the page: how many times slower, and milliseconds.
SLOWER = float(os.environ.get("BLOCKPTY_PAGE_SLOWER", "1"))
LATENCY_MS = float(os.environ.get("BLOCKPTY_PAGE_LATENCY", "0"))


def missing() -> str:
    """Return what a test in a browser lacks here; empty when nothing."""
    if importlib.util.find_spec("playwright") is None:
        return "not installed: playwright (pip)"
    if not any(shutil.which(one) for one in PROGRAMS):
        return "not installed: chromium"
    return "" if (BUILT / "index.html").exists() else "the page was not built: python hatch_build.py says why"


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium, headless."""
    from playwright.sync_api import sync_playwright

    path = next(found for one in PROGRAMS if (found := shutil.which(one)))
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass
class Watched:
    """A page, the sockets it opened, what it sent over them, and its complaints.

    Complaints are errors of the console, with violations of the policy, and dialogs.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)
    sent: list[str | bytes] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        def console(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.complaints.append(f"console: {message.text}")

        self.page.set_default_timeout(WAIT_MS)
        if SLOWER != 1 or LATENCY_MS:
            protocol = self.page.context.new_cdp_session(self.page)
            protocol.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
            protocol.send("Network.enable")
            slow = {"offline": False, "latency": LATENCY_MS, "downloadThroughput": -1, "uploadThroughput": -1}
            protocol.send("Network.emulateNetworkConditions", slow)
        self.page.on("console", console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error.stack or error}"))
        def opened(socket: Any) -> None:
            self.opened.append(socket.url)
            socket.on("framesent", lambda frame: self.sent.append(frame))

        self.page.on("websocket", opened)
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))

    def screen(self) -> list[str]:
        """Return the rows that xterm.js shows, without blanks at their ends; none while it is on its way."""
        rows: list[str] = self.page.evaluate(
            """() => { const t = document.querySelector('.glass')?.terminal, b = t?.buffer.active;
            const row = (_, y) => b.getLine(b.baseY + y).translateToString(true).trimEnd();
            return t ? Array.from({length: t.rows}, row) : [] }"""
        )
        return rows

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds of the page."""
        deadline = time.monotonic() + WAIT_MS / 1000
        while not holds():
            assert time.monotonic() < deadline, f"{what}; the page: {self.page.inner_text('body')}"
            self.page.wait_for_timeout(50)


    def until_script(self, expression: str) -> None:
        """Wait until an expression is true in the page; wait_for_function needs eval, which the policy forbids."""
        self.until(lambda: bool(self.page.evaluate(expression)), expression)


END_OF_ROW = """(block) => { const out = document.querySelector(`${block} .out`), range = document.createRange();
    const row = [...out.querySelectorAll('.row')].at(-1), { firstChild: text } = row;
    const view = out.closest('.blocks').getBoundingClientRect(), at = row.getBoundingClientRect();
    if (at.top < view.top + 40 || at.bottom > view.bottom) row.scrollIntoView({ block: 'center' });
    range.setStart(text, text.length - 2);
    range.setEnd(text, text.length);
    const { left, right } = range.getBoundingClientRect(), box = out.getBoundingClientRect();
    const isInView = left >= box.left && right < Math.min(box.right, innerWidth) + 1;
    return [isInView ? `${range}` : '', right - box.right] }"""


def end_of_row(watched: Watched, block: str) -> str:
    """Move an output sideways by keys to the end of its last row; returns the two characters there."""
    found, by = watched.page.evaluate(END_OF_ROW, block)
    assert found == "", "it does not fit"

    def is_there() -> bool:
        nonlocal found, by
        for _ in range(1 + int(abs(by)) // 40):
            watched.page.keyboard.press("ArrowRight" if by > 0 else "ArrowLeft")
        found, by = watched.page.evaluate(END_OF_ROW, block)
        return bool(found)

    watched.page.focus(f"{block} .out[tabindex='0']")
    watched.until(is_there, "the end of the row is in view")
    return str(found)


class Served:
    """The server of a home in its own process, and the command line beside it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()
        self.start()

    def start(self, *options: str) -> None:
        """Start it, and again on the same port."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "blockpty", "--home", str(self.home)),
                *("serve", "--json", "--port", str(self.port), *options),
            ],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        facts = json.loads(self._process.stdout.readline())
        assert "url" in facts, facts
        self.url, self.page = facts["url"], facts["page"]

    def kill(self) -> None:
        """Kill it at once; the shells run on in the host."""
        self._process.send_signal(signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        self.cli("close", "c1", check=False)
        self._process.terminate()
        self._gone()

    def cli(self, *arguments: str, check: bool = True) -> str:
        """Run a command of blockpty; return what it printed."""
        status, printed, said = call("--home", str(self.home), *arguments)
        assert status == 0 or not check, (arguments, printed, said)
        return printed

    def rows(self, at: int | None = None) -> list[str]:
        """Return the rows that the engine shows, or showed at a cursor."""
        shown = json.loads(self.cli("screen", "c1", "--json", *([] if at is None else ["--at", str(at)])))
        rows = [row.rstrip() for row in shown["content"].split("\n")]
        return (rows + [""] * shown["rows"])[: shown["rows"]]

    def _gone(self) -> None:
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def sign_in(context: BrowserContext, served: Served) -> Watched:
    """Open the page with a code; complaints are collected from the beginning."""
    watched = Watched(context.new_page())
    address = json.loads(served.cli("view", "--web", "--json"))["page"]
    watched.page.goto(address)
    watched.page.wait_for_selector(".side .entry")
    return watched


def enter(watched: Watched) -> Watched:
    """Go to the conversation; returns when the screen is live."""
    watched.page.click(".side .entry")
    watched.page.wait_for_selector(".screen-head .chip.run")
    return watched


def skip_where_missing() -> pytest.MarkDecorator:
    """Return the mark of tests in a browser."""
    lacks = missing()
    return pytest.mark.skipif(bool(lacks), reason=lacks or "nothing is missing")
