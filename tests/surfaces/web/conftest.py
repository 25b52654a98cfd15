"""The browser of the tests of the page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import Served, browser
from tests.support.homes import fill
from tests.support.processes import stop_server

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext

    from blockpty.testing import Recording


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def shared_context(chromium: Browser) -> Iterator[BrowserContext]:
    made = chromium.new_context(viewport={"width": 1600, "height": 960})
    made.new_page()  # a context without a page ends its processes, and the next page starts them again
    yield made
    made.close()


@pytest.fixture
def context(shared_context: BrowserContext) -> Iterator[BrowserContext]:
    """The windows of one user. To start a browser process takes a second, so that the tests of a file share it.

    Nothing goes from one test to the next: each server has an origin of its own.
    """
    first = shared_context.pages[0]
    yield shared_context
    for page in shared_context.pages:
        if page is not first:
            page.close()
    shared_context.unroute_all()
    shared_context.clear_permissions()


@pytest.fixture
def own_context(chromium: Browser) -> Iterator[BrowserContext]:
    """A context of the test's own, for what cannot be taken back."""
    made = chromium.new_context(viewport={"width": 1600, "height": 960})
    yield made
    made.close()


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    """A server with one conversation, c1."""
    started = Served(home)
    started.cli("open", "c1", "--shell", "bash")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def serve_recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, homes: dict[Path, str]
) -> Iterator[Callable[[str, Recording], Served]]:
    """Serve a conversation of this name with a recording, which no shell has had to produce; stopped after the file."""
    with ExitStack() as stopping:

        def serve(name: str, recording: Recording) -> Served:
            top = tmp_path_factory.mktemp("h")
            homes[top] = request.module.__name__
            home = top / "home"
            # In a thread: Playwright has the loop of this one.
            filling = threading.Thread(target=lambda: asyncio.run(fill(home, [name], recording)))
            filling.start()
            filling.join()
            started = Served(home)
            stopping.callback(stop_server, home)
            stopping.callback(started.stop)
            return started

        yield serve
