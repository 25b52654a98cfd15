"""Pages whose server dies, whose network is cut, and whose clock jumps: no gap, nothing twice, signed in still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import Served, Watched, enter, sign_in, skip_where_missing
from tests.support.profile import LONG
from tests.support.tcp_proxy import TcpProxy, between

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

pytestmark = [skip_where_missing(), pytest.mark.needs("bash"), pytest.mark.slow, pytest.mark.timeout(240)]

PAGES = 5 if LONG else 3
# A lost connection is an error of the console; nothing else may be.
LOST = ("WebSocket connection", "Failed to load resource")
# Prints on until a file appears, so that it certainly prints before, while and after the connection is gone.
PRINTS = "for ((i = 1; ; i++)); do echo line-$i; [[ -e '{0}' ]] && break; read -t 0.02; done <> <(:); echo last-$i"
BUFFER = """() => { const b = document.querySelector('.glass').terminal.buffer.active;
return Array.from({length: b.length}, (_, y) => b.getLine(y).translateToString(true)) }"""


def _printed(watched: Watched) -> int:
    """Return the highest number that the screen shows; 0 when none."""
    numbers = [int(row[5:]) for row in watched.screen() if row.startswith("line-")]
    return max(numbers, default=0)


def _check(watched: Watched, served: Served) -> None:
    """The page has become what the engine has, with every line once."""
    watched.page.wait_for_selector(".screen-head .chip.run")
    watched.page.wait_for_selector(".block.ok")
    watched.until(lambda: any(row.startswith("last-") for row in watched.screen()), "it goes on to the end")
    watched.until(lambda: watched.screen() == served.rows(), "the screen is that of the engine")
    shown = [row for row in watched.page.evaluate(BUFFER) if row.startswith(("line-", "last-"))]
    count = int(shown[-1][5:])
    lines = [int(row[5:]) for row in shown[:-1]]
    assert lines == list(range(count + 1 - len(lines), count + 1)), "no gap and nothing twice"
    watched.page.locator(".block .fold button", has_text="Show all").click()
    watched.until_script(f"document.querySelector('.out').clientHeight === {count + 1} * 19")
    assert watched.page.locator(".block").count() == 1
    assert watched.page.locator(".side .entry").count() == 1, "signed in still"
    assert [one for one in watched.complaints if not any(word in one for word in LOST)] == []


def test_several_pages_and_a_killed_server(chromium: Browser, served: Served, tmp_path: Path) -> None:
    contexts = [chromium.new_context() for _ in range(PAGES)]
    try:
        pages = [enter(sign_in(context, served)) for context in contexts]
        end = tmp_path / "end"
        served.cli("exec-block", "c1", PRINTS.format(end))
        for watched in pages:
            watched.until(lambda watched=watched: _printed(watched) > 0, "it prints")
        pages[0].page.get_by_text(f"{PAGES} watching").wait_for()
        served.kill()
        for watched in pages:
            watched.page.wait_for_selector(".banner")
        pages[0].page.keyboard.press("t")
        pages[0].page.locator(".notice", has_text="Control cannot be taken while").wait_for()
        served.start()
        for watched in pages:
            watched.page.wait_for_selector(".screen-head .chip.run")
        before = _printed(pages[-1])
        pages[-1].until(lambda: _printed(pages[-1]) > before, "it prints on")
        end.touch()
        for watched in pages:
            _check(watched, served)
    finally:
        for context in contexts:
            context.close()


@pytest.fixture
def network(served: Served) -> Iterator[TcpProxy]:
    with between(served.port) as proxy:
        served.kill()
        name = f"127.0.0.1:{proxy.port}"
        served.start("--allowed-host", name, "--allowed-origin", f"http://{name}")
        yield proxy


def _far(context: BrowserContext, served: Served, network: TcpProxy) -> Watched:
    """A page on the other side of the network."""
    code = served.cli("view", "--web", "--json").partition("#code=")[2].partition('"')[0]
    watched = Watched(context.new_page())
    watched.page.clock.install()
    watched.page.goto(f"http://127.0.0.1:{network.port}/#code={code}")
    watched.page.wait_for_selector(".side .entry")
    return enter(watched)


def test_a_network_that_breaks_connections_while_the_clock_jumps(
    context: BrowserContext, served: Served, network: TcpProxy, tmp_path: Path
) -> None:
    watched = _far(context, served, network)
    end = tmp_path / "end"
    served.cli("exec-block", "c1", PRINTS.format(end))
    watched.until(lambda: _printed(watched) > 0, "it prints")
    network.cut()
    watched.page.wait_for_selector(".banner")
    before = _printed(watched)
    served.cli("wait-for", "c1", f"line-{before + 100}")
    watched.page.clock.fast_forward("02:00:00")
    watched.page.wait_for_selector(".banner")
    network.restore()
    watched.until(lambda: _printed(watched) > before + 100, "it prints on")
    end.touch()
    _check(watched, served)


def test_a_network_that_passes_nothing_on_for_a_while(
    context: BrowserContext, served: Served, network: TcpProxy, tmp_path: Path
) -> None:
    watched = _far(context, served, network)
    end = tmp_path / "end"
    served.cli("exec-block", "c1", PRINTS.format(end))
    watched.until(lambda: _printed(watched) > 0, "it prints")
    network.stall()
    before = _printed(watched)
    served.cli("wait-for", "c1", f"line-{before + 200}")
    end.touch()
    served.cli("wait-for", "c1", '{"token": "PROMPT"}')
    network.restore()
    _check(watched, served)


def test_a_page_that_slept_asks_anew(
    context: BrowserContext, served: Served, network: TcpProxy, tmp_path: Path
) -> None:
    watched = _far(context, served, network)
    end = tmp_path / "end"
    served.cli("exec-block", "c1", PRINTS.format(end))
    watched.until(lambda: _printed(watched) > 0, "it prints")
    opened = len(watched.opened)
    # Its connections are dead, and nothing says so.
    watched.page.clock.fast_forward("01:00:00")
    watched.until(lambda: len(watched.opened) > opened, "it has opened others")
    watched.until(lambda: _printed(watched) > 20, "there is enough to fold")
    end.touch()
    _check(watched, served)
