"""The browser of the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import Served, browser

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
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
