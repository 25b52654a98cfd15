"""The page in a real browser, its sockets, and `blockpty view` on a terminal: what a person waits for.

The server is a process of its own; the browser is Debian's Chromium, headless, on the same machine, so that browser,
server and shells share its cores. Times of the page are taken in the page, by its own clock.
"""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from bench.many_watchers import Watchers
from bench.report import Row, Run, median, percentile, skipped
from bench.search import make_home
from bench.streams import lines as coloured_lines
from bench.terminal_view import measure_program
from blockpty import Client
from blockpty.screen.widths import VERSION as WIDTHS
from blockpty.spool import checkpoint
from blockpty.surfaces import launching
from blockpty.surfaces.http.page import BUILT
from blockpty.surfaces.tokens import owner_token
from blockpty.testing import FakePty
from tests.support.processes import end_left_processes

TOP: Final = Path(__file__).resolve().parents[2]
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
SIZE: Final = {"width": 1600, "height": 960}
CONVERSATIONS: Final = 15
PATIENCE_SECONDS: Final = 60
TEN_LINES: Final = "for ((i = 0; i < {} * 10; i++)); do echo line $i; sleep 0.1; done"

NOTE = (
    "viewer: Chromium, headless, software rendering, 1600x960; times by the page's own clock; range over the rounds;"
    " before each the server has come to rest"
)
NOTE_KEY = (
    "viewer, key: from the key event in the page to the page's drawing of its echo by the terminal line of `cat`:"
    " page, WebSocket, recorder, terminal, and back; not to the light of a monitor"
)
NOTE_WATCHED = (
    "viewer, watched: duration of the block, in turn with a page on the screen and with none; browser, server and"
    " shell share the cores. The last screen was compared in every round"
)
NOTE_FRAMES = (
    "viewer, frames: longest time between two animation frames while it printed, in separate floods, because a page"
    " that counts its frames draws sixty a second"
)
NOTE_FLOOD = (
    "viewer, flood: from the command to the last byte at the slowest viewer; viewers are plain sockets with a window of"
    " 256 KiB in a process of their own; in turn"
)
NOTE_CALLS = "viewer, other calls: `status` of another conversation over the unix socket every 20 ms during the flood"
NOTE_LIST = "viewer, list: from the address to the first paint with all conversations in it, assets cached"
NOTE_SEARCH = "viewer, search: from the last key to hits on the page, with the page's own pause of 50 ms"

# Put into every page before its own script: what it measures is read with page.evaluate.
PROBE = """(() => {
  const probe = (window.probe = { frames: [], keyed: 0, drawn: [], watch: null });
  let before = 0;
  probe.start = () => { probe.frames = []; before = 0; probe.on = true; requestAnimationFrame(tick); };
  probe.stop = () => { probe.on = false; return probe.frames; };
  const tick = (now) => {
    if (before) probe.frames.push(now - before);
    before = now;
    if (probe.on) requestAnimationFrame(tick);
  };
  probe.until = (holds) => new Promise((resolve) => {
    const drawn = () => resolve(performance.now());
    const look = () => requestAnimationFrame(holds() ? drawn : look);
    look();
  });
  probe.lists = (count) => probe.until(() => document.querySelectorAll(".side .entry").length >= count);
  probe.reads = () => probe.until(() => {
    const rows = document.querySelectorAll(".block .row");
    return rows.length && rows[rows.length - 1].getBoundingClientRect().top < innerHeight;
  });
  probe.keys = () => {
    const { terminal } = document.querySelector(".glass");
    addEventListener("keydown", (event) => { probe.keyed = event.timeStamp; }, true);
    terminal.onRender(() => {
      const at = terminal.buffer.active.cursorX;
      if (probe.keyed && at !== probe.column) { probe.drawn.push(performance.now() - probe.keyed); probe.keyed = 0; }
      probe.column = at;
    });
  };
  probe.rows = () => {
    const { terminal } = document.querySelector(".glass"), buffer = terminal.buffer.active;
    return Array.from({ length: terminal.rows }, (_, y) =>
      buffer.getLine(buffer.baseY + y).translateToString(true).trimEnd());
  };
})()"""


def measure(run: Run) -> list[Row]:
    """Measure the page where there is a browser, and the program in a terminal."""
    rows = [_script()]
    browser = next((found for one in PROGRAMS if (found := shutil.which(one))), None)
    lacks = (
        "playwright is not installed" if importlib.util.find_spec("playwright") is None
        else "chromium is not installed" if browser is None
        else "the page was not built" if not (BUILT / "index.html").exists()
        else ""
    )  # fmt: skip
    home = run.place / "viewed"
    _corpus(run, home)
    launching.start(home, ["--port", "0", "--session-limit", "40"])
    try:
        if lacks or browser is None:
            rows.append(skipped("viewer", "the page", lacks))
        else:
            rows += asyncio.run(_page(run, home, browser))
        rows += asyncio.run(_viewers(run, home))
        rows += asyncio.run(measure_program(run, home))
    finally:
        subprocess.run(
            [sys.executable, "-m", "blockpty", "serve", "--stop", "--home", str(home)],
            env={**os.environ, "PYTHONPATH": str(TOP)}, stdout=subprocess.DEVNULL, check=True, cwd="/",
        )  # fmt: skip
        # Shells outlive their server, and write into a directory that is about to be removed.
        end_left_processes(home.parent, "bench")
    return rows


def _script() -> Row:
    index = BUILT / "index.html"
    if not index.exists():
        return skipped("viewer", "script before the first paint", "the page was not built")
    names = re.findall(r'(?:src|href)="\./(assets/[^"]+\.js)"', index.read_text("utf-8"))
    assert names, "the page has no script"
    size = sum(len(gzip.compress((BUILT / name).read_bytes(), 9)) for name in names) / 1000
    return Row("viewer", "script before the first paint, gzip", size, "kB", aim="<= 170 kB", met=size <= 170)


def _corpus(run: Run, home: Path) -> None:
    """Write a conversation of many blocks and some text to search, as a server would find them."""
    make_home(home, (run.megabytes or run.count(30, 1)) * 1_000_000, run.place / "blocks.jsonl")
    pty = FakePty()
    pty.recording.stream = bytearray()  # type: ignore[assignment]  # grows in place
    pty.spawn()
    pty.prompt()
    for number in range(run.count(10_000, 200)):
        pty.clock.advance(1000)
        pty.run(f"echo {number}", b"%d\r\n" % number)
    pty.recording.stream = bytes(pty.recording.stream)
    pty.recording.save(home / "conversations" / "blocks")
    for directory in (home / "conversations").iterdir():
        meta = {
            "format": checkpoint.FORMAT_VERSION, "conversation_id": directory.name, "created_ts": 1_700_000_000_000,
            "shell": "/bin/bash", "widths": WIDTHS,
        }  # fmt: skip
        checkpoint.replace(directory / "meta.json", meta)


def _row(
    what: str, samples: list[float], unit: str, aim: float | None = None, note: str = NOTE, value: float | None = None
) -> Row:
    found = median(samples) if value is None else value
    words = None if aim is None else f"<= {aim:g} {unit}"
    return Row(
        "viewer", what, found, unit, aim=words, met=None if aim is None else found <= aim,
        low=min(samples), high=max(samples), note=note,
    )  # fmt: skip


# The page


async def _page(run: Run, home: Path, browser: str) -> list[Row]:
    from playwright.async_api import async_playwright

    async with Client(home, start=False) as client, async_playwright() as playwright:
        args = ["--no-sandbox", "--enable-precise-memory-info"]
        started = await playwright.chromium.launch(executable_path=browser, args=args)
        context = await started.new_context(viewport=SIZE)
        await context.add_init_script(PROBE)
        page = await context.new_page()
        page.set_default_timeout(30_000)
        state = launching.state(home) or {}
        server = _Page(run, client, page, str(state["url"]), int(state["pid"]))
        await client.overview(timeout_ms=60_000)  # from now on it indexes what is there
        await _at_rest(run, int(state["pid"]))
        # It was left by no engine: read from its beginning it would change its line in the list while that is measured.
        await (await client.conversation("blocks")).status()
        code = (await client.post("/auth/code", {}))["code"]
        await page.goto(f"{server.url}/#code={code}")
        await page.wait_for_selector(".side .entry")
        for number in range(run.count(CONVERSATIONS, 2)):
            opened = await client.open(f"v{number}", shell="bash")
            await opened.run("echo begun")
        rows = []
        for part in (server.first_paint, server.many_blocks, server.long_output, server.keys, server.search,
                     server.watched, server.seek):  # fmt: skip
            await _at_rest(run, int(state["pid"]))
            found = await part()
            print(*(f"  {row.what}: {row.value:.1f} {row.unit}" for row in found), sep="\n", file=sys.stderr)
            rows += found
        for number in range(1, run.count(CONVERSATIONS, 2)):
            await (await client.conversation(f"v{number}")).close()
        await started.close()
        return rows


class _Page:
    """One signed-in page, and the client beside it."""

    def __init__(self, run: Run, client: Any, page: Any, url: str, pid: int) -> None:
        self._run, self._client, self._page, self.url = run, client, page, url
        self._pid = pid

    async def _place(self, path: str, ready: str) -> float:
        await self._page.goto(self.url + path)
        found: float = await self._ask(ready)
        return found

    async def _ask(self, expression: str, argument: Any = None) -> Any:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._page.evaluate(expression, argument)

    async def first_paint(self) -> list[Row]:
        count = self._run.count(CONVERSATIONS, 2)
        times = [await self._place("/", f"probe.lists({count})") for _ in range(self._run.pairs(15))]
        asked: list[str] = []
        self._page.on("request", lambda request: asked.append(request.url))
        await asyncio.sleep(3)  # what was begun comes to rest
        asked.clear()
        await asyncio.sleep(self._run.count(10, 1))
        return [
            _row("first paint with 15 conversations", times, "ms", 300, NOTE_LIST),
            _row("requests of an idle first page in 10 s", [float(len(asked))], "", 0, NOTE),
        ]

    async def many_blocks(self) -> list[Row]:
        await self._place("/c/blocks", "probe.reads()")  # attached by the server once
        await _at_rest(self._run, self._pid)
        times = [await self._place("/c/blocks", "probe.reads()") for _ in range(self._run.pairs(9))]
        return [_row("10,000 blocks opened, newest readable", times, "ms", 400)]

    async def long_output(self) -> list[Row]:
        lines = self._run.count(100_000, 2_000)
        shown = await self._client.conversation("v0")
        log = self._run.place / "coloured.log"
        log.write_bytes(b"".join(itertools.islice(coloured_lines(coloured=True), lines)))
        await shown.run(f"cat {log}", timeout_ms=120_000, max_bytes=1000)
        painted, whole, frames, heap = [], [], [], []
        for _ in range(self._run.pairs(5)):
            await self._place("/c/v0", "probe.reads()")
            await _at_rest(self._run, self._pid)
            first, last = await self._ask(SHOW_ALL, lines)
            painted.append(first)
            whole.append(last)
            frames += await self._ask(SCROLL, self._run.count(120, 10))
            heap.append(await self._ask("performance.memory.usedJSHeapSize / 1e6"))
            await self._ask("sessionStorage.removeItem('blockpty.fold.v0.b2')")
        return [
            _row("100,000 lines, Show all to rows", painted, "ms", 150),
            _row("100,000 lines, all of them fetched", whole, "ms"),
            _row("100,000 lines, frame while scrolling, p95", frames, "ms", 17.5, value=percentile(frames, 95)),
            _row("100,000 lines, longest frame while scrolling", frames, "ms", 50, value=max(frames)),
            _row("100,000 lines, heap of the page", heap, "MB", 40),
        ]

    async def keys(self) -> list[Row]:
        opened = await self._client.conversation("v0")
        await opened.exec_interactive("cat")
        await self._live("v0")
        while not await self._page.locator(".glass.mine").count():
            await self._page.keyboard.press("t")
            await asyncio.sleep(1)
        await self._ask("probe.keys()")
        for number in range(self._run.count(240, 12)):
            await self._page.keyboard.press("x" if number % 60 else "Enter")
            await asyncio.sleep(0.06)
        times = await self._ask("probe.drawn")
        await self._page.keyboard.press("Control+]")
        await opened.ctrl_c()
        return [
            _row("key to screen, p50", times, "ms", 15, NOTE_KEY),
            _row("key to screen, p95", times, "ms", 30, NOTE_KEY, percentile(times, 95)),
        ]

    async def _live(self, name: str) -> None:
        await self._page.goto(f"{self.url}/c/{name}")
        await self._page.wait_for_selector(".screen-head .chip.run")

    async def watched(self) -> list[Row]:
        opened = await self._client.open("flood", shell="bash")
        count = self._run.count(1_000_000, 10_000)
        seen, alone, late, worst = [], [], [], []

        async def flood() -> float:
            await _at_rest(self._run, self._pid)
            done = await opened.run(f"seq 1 {count}", timeout_ms=120_000, max_bytes=1000)
            return float(done.block.duration_ms)

        async def become_equal() -> float:
            """Return after how many milliseconds the page has what the engine has."""
            ended = time.perf_counter()
            screen = await opened.screen(format="text")
            rows = [row.rstrip() for row in screen.content.split("\n")]
            wanted = (rows + [""] * 24)[:24]
            while await self._ask("probe.rows()") != wanted:
                assert time.perf_counter() - ended < 30, "the page does not become what the engine has"
                await asyncio.sleep(0.02)
            return (time.perf_counter() - ended) * 1000

        for number in range(self._run.pairs(15)):
            for is_watched in (True, False) if number % 2 else (False, True):
                if is_watched:
                    await self._live("flood")
                    seen.append(await flood())
                    late.append(await become_equal())
                else:
                    await self._page.goto("about:blank")
                    alone.append(await flood())
        for _ in range(self._run.pairs(7)):
            await self._live("flood")
            await self._ask("probe.start()")
            await flood()
            await become_equal()
            worst.append(max(await self._ask("probe.stop()")))
        ratios = [one / other for one, other in zip(alone, seen, strict=True)]
        ratio = median(ratios)
        return [
            Row("viewer", f"seq 1 {count} watched", median(seen), "ms", "not watched", median(alone), ratio,
                "speed watched / not", ">= 0.9 of the speed", ratio >= 0.9, min(ratios), max(ratios), NOTE_WATCHED),
            _row("the page equal to the engine after it", late, "ms", 250, NOTE_WATCHED),
            _row("longest frame meanwhile", worst, "ms", 200, NOTE_FRAMES),
        ]  # fmt: skip

    async def search(self) -> list[Row]:
        times = []
        for number in range(self._run.pairs(11)):
            await self._place("/", "probe.lists(1)")
            await self._page.keyboard.press("/")
            word = ("timeout", "request", "worker", "parser", "buffer")[number % 5]
            await self._page.keyboard.type(word[:3], delay=30)
            times.append(await self._ask(SEARCH_BEGIN))
            await self._page.keyboard.type(word[3])
            times[-1] = await self._ask("probe.hits")
        size = self._run.megabytes or self._run.count(30, 1)
        return [_row(f"search in {size} MB, key to hits", times, "ms", 250, NOTE_SEARCH)]

    async def seek(self) -> list[Row]:
        opened = await self._client.conversation("flood")
        await self._page.goto(f"{self.url}/c/flood/replay?at=1")
        await self._page.wait_for_selector(".lane i")
        await asyncio.sleep(1)
        box = await self._page.locator(".lane").bounding_box()
        times = []
        for number in range(self._run.count(24, 2)):
            await self._ask(SEEK_BEGIN)
            share = 0.03 + 0.94 * (number * 7 % 24) / 24
            await self._page.mouse.click(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
            if found := await self._ask("probe.sought"):
                times.append(found)
        size = (await opened.status()).cursor / 1e6
        await opened.close()
        return [_row(f"seek in a replay of {size:.0f} MB", times, "ms", 150)]


SHOW_ALL = """async (lines) => {
  const button = () => [...document.querySelectorAll(".fold button")].findLast((one) => one.textContent === "Show all");
  await probe.until(button);
  const begun = performance.now();
  button().click();
  const high = (rows) => [...document.querySelectorAll(".out")].some((out) => out.clientHeight >= rows * 19);
  const first = await probe.until(() => high(lines / 2));
  const whole = await probe.until(() => high(lines));
  return [first - begun, whole - begun];
}"""
SCROLL = """async (count) => {
  const box = document.querySelector(".blocks");
  // Asked for once: who scrolls does not have the page laid out once more in each frame.
  const height = box.scrollHeight;
  probe.start();
  for (let at = 0; at < count; at++) {
    box.scrollTop = ((at * 7919) % 97) / 97 * height;
    await new Promise(requestAnimationFrame);
  }
  return probe.stop();
}"""
SEARCH_BEGIN = """(() => {
  let typed = 0;
  addEventListener("keydown", (event) => (typed = event.timeStamp), { capture: true, once: true });
  probe.hits = probe.until(() => { const mark = document.querySelector(".hits mark"); return typed && mark &&
    mark.textContent.length === 4; }).then((now) => now - typed);
})()"""
SEEK_BEGIN = """(() => {
  const { terminal } = document.querySelector(".glass");
  let pressed = 0;
  addEventListener("pointerdown", (event) => (pressed = event.timeStamp), { capture: true, once: true });
  const before = document.querySelector(".facts .mono").textContent;
  probe.sought = new Promise((resolve) => {
    const heard = terminal.onRender(() => {
      if (!pressed || document.querySelector(".facts .mono").textContent === before) return;
      heard.dispose();
      resolve(performance.now() - pressed);
    });
    // In a silence there is nothing new to see.
    setTimeout(resolve, 3000, 0);
  });
})()"""


# Many viewers


async def _viewers(run: Run, home: Path) -> list[Row]:
    many = run.count(20, 3)
    pid = int((launching.state(home) or {})["pid"])
    async with Client(home, start=False) as client:
        opened = await client.open("crowd", shell="bash")
        other = await client.open("other", shell="bash")
        rows = await _trickle(run, home, opened, many, pid)
        times: dict[int, list[float]] = {1: [], many: []}
        calls: dict[int, list[float]] = {1: [], many: []}
        for number in range(run.pairs(7)):
            for count in (1, many) if number % 2 else (many, 1):
                async with _watching(home, "crowd", count) as watchers:
                    await _at_rest(run, pid)
                    answering = asyncio.ensure_future(_answers(other, calls[count]))
                    begun = time.perf_counter()
                    done = await opened.run(
                        f"seq 1 {run.count(1_000_000, 10_000)}", timeout_ms=300_000, max_bytes=1000
                    )
                    await watchers.reach(done.cursor)
                    times[count].append(time.perf_counter() - begun)
                    answering.cancel()
                    await asyncio.wait((answering,))
        ratios = [crowd / one for crowd, one in zip(times[many], times[1], strict=True)]
        ratio = median(ratios)
        waits = calls[many] or [0.0]
        worst = percentile(waits, 99)
        for one in (opened, other):
            await one.close()
    return [
        *rows,
        Row("viewer", f"flood at {many} viewers", median(times[many]), "s", "at one", median(times[1]), ratio,
            "value / beside", "<= 2 times", ratio <= 2, min(ratios), max(ratios), NOTE_FLOOD),
        Row("viewer", "other calls meanwhile, p99", worst, "ms", "at one viewer", percentile(calls[1] or [0.0], 99),
            worst / max(0.001, percentile(calls[1] or [0.0], 99)), "value / beside", "<= 100 ms", worst <= 100,
            min(waits), max(waits), NOTE_CALLS),
    ]  # fmt: skip


async def _trickle(run: Run, home: Path, opened: Any, many: int, pid: int) -> list[Row]:
    """Ten lines a second, with and without viewers."""
    seconds = run.count(15, 1)
    used = []
    for count in (0, many):
        async with _watching(home, "crowd", count):
            begin = await opened.exec_block(TEN_LINES.format(seconds + 2))
            await asyncio.sleep(1)
            before, began = _cpu_seconds(pid), time.perf_counter()
            await asyncio.sleep(seconds)
            used.append((_cpu_seconds(pid) - before) / (time.perf_counter() - began) * 100)
            await opened.wait_for({"token": "PROMPT"}, from_cursor=begin.cursor, timeout_ms=60_000)
    if not used[0]:
        used[0] = 0.01
    note = "viewer, 10 lines/s: processor time of the server by the seconds measured, with viewers and without"
    return [
        Row("viewer", f"{many} viewers of 10 lines/s, of one core", used[1], "%", "no viewer", used[0],
            used[1] / used[0], "value / beside", "< 20 %", used[1] < 20, note=note)
    ]  # fmt: skip


@asynccontextmanager
async def _watching(home: Path, conversation_id: str, count: int) -> AsyncIterator[Watchers]:
    watchers = Watchers()
    if not count:
        yield watchers
        return
    url = str((launching.state(home) or {})["url"])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "from bench.many_watchers import main; main()", url, owner_token(home), conversation_id,
        str(count), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{TOP}{os.pathsep}{TOP / 'tools'}"},
    )  # fmt: skip
    watchers.begin(process)
    try:
        await watchers.reach(0)
        yield watchers
    finally:
        process.kill()
        await process.wait()


async def _answers(other: Any, times: list[float]) -> None:
    while True:
        begun = time.perf_counter()
        await other.status()
        times.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(0.02)


async def _at_rest(run: Run, pid: int) -> None:
    """Wait until the server has nothing to do: indexing what a part has printed takes a processor in the next one."""
    quiet = 0
    while quiet < 2 and not run.quick:
        before = _cpu_seconds(pid)
        await asyncio.sleep(0.5)
        quiet = quiet + 1 if _cpu_seconds(pid) - before < 0.05 else 0


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


