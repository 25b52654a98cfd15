"""What reaches a terminal: nothing that could do more than colour."""

from __future__ import annotations

import asyncio
import base64
import io
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blockpty.errors import Busy
from blockpty.model.results import (
    ApprovalsResult,
    AuditResult,
    BlocksResult,
    ControlResult,
    HaltResult,
    ListResult,
    ReadResult,
    Result,
    RunResult,
    SendResult,
    UserInputResult,
    VerdictResult,
    VerifyResult,
    WaitResult,
)
from blockpty.surfaces.cli import progress
from blockpty.surfaces.cli.render import ResultPrinter, duration, exit_status, sanitize
from tests.support.async_tests import async_test
from tests.support.operations import APPROVAL, BLOCK, EVENTS, INFO, PARAMS, RESULTS

SHOWN = [
    ("plain text\n", "plain text\n"),
    ("tabs\tand ümlaut 😀", "tabs\tand ümlaut 😀"),
    ("dos\r\nline", "dos\nline"),
    ("over\rwritten", "over^Mwritten"),
    ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m\x1b[0m"),
    ("\x1b[1;38;5;196;48:2::1:2:3mx", "\x1b[1;38;5;196;48:2::1:2:3mx\x1b[0m"),
    ("\x1b[m", "\x1b[m\x1b[0m"),
    ("\x1b]0;title\x07", "^[]0;title^G"),
    ("\x1b]52;c;aGk=\x1b\\", "^[]52;c;aGk=^[\\"),
    ("\x1b[2J\x1b[H", "^[[2J^[[H"),
    ("\x1b[?1049h", "^[[?1049h"),
    ("\x1b[>4;2m", "^[[>4;2m"),
    ("\x1b[6n", "^[[6n"),
    ("\x1bP+q\x1b\\", "^[P+q^[\\"),
    ("\x1b", "^["),
    ("\x1b[31", "^[[31"),
    ("\x1b[" + "1;" * 40 + "m", "^[[" + "1;" * 40 + "m"),
    ("\x00\x07\x08\x0b\x0c\x0e\x7f", "^@^G^H^K^L^N^?"),
    ("\x9b31m \x90 \x85", "<U+009B>31m <U+0090> <U+0085>"),
    ("user\u202etxt.exe", "user<U+202E>txt.exe"),
    ("\u2066\u200f\u2028", "<U+2066><U+200F><U+2028>"),
    ("\ud800", "<U+D800>"),
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_what_is_shown(text: str, shown: str) -> None:
    assert sanitize(text) == shown


def test_without_colour_nothing_passes() -> None:
    assert sanitize("\x1b[31mred\x1b[0m \x1b[2J", colour=False) == "red ^[[2J"


@given(st.text(alphabet=st.sampled_from("\x1b[]0;:31mJ?\x07\x9b\r\n\t x\u202e") | st.characters()))
def test_only_colours_tabs_and_line_ends_are_left(text: str) -> None:
    safe = sanitize(text)
    rest = re.sub(r"\x1b\[[0-9;:]*m", "", safe)
    assert all(character in "\t\n" or not re.match(r"[\x00-\x1f\x7f-\x9f]", character) for character in rest)
    assert "\x1b" not in sanitize(text, colour=False)
    assert safe == sanitize(text) and ("\x1b" not in safe or safe.endswith("\x1b[0m"))


class Terminal(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        self.flush()
        raw = self.buffer
        assert isinstance(raw, io.BytesIO)
        return raw.getvalue().decode()


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b6n\u202e"
HOSTILE_RESULTS: list[tuple[str, Result]] = [
    ("run", RunResult(replace(BLOCK, exit_status=None, state=HOSTILE), HOSTILE, 4, True, False, HOSTILE, 20)),
    ("read", ReadResult(HOSTILE, 9, False, data_b64=base64.b64encode(HOSTILE.encode()).decode())),
    ("wait_for", WaitResult(True, HOSTILE, 20, 0, HOSTILE, {"1": HOSTILE, HOSTILE: "x"})),
    ("wait_for", WaitResult(False, "timeout", 20, text=HOSTILE, foreground=HOSTILE, hint=HOSTILE)),
    ("run", replace(RESULTS["run"], reason="input", tty="raw", foreground=HOSTILE, hint=HOSTILE)),  # type: ignore[type-var]
    ("send", SendResult(20, 1, False, "timeout", text=HOSTILE, hint=HOSTILE)),
    ("send", SendResult(20, 1, True, "matched", text=HOSTILE, mode="idle")),
    ("list", ListResult([replace(INFO, cwd=HOSTILE, shell=HOSTILE)])),
    ("blocks", BlocksResult([replace(BLOCK, cmd=HOSTILE)], None, 20)),
    ("verify", VerifyResult(False, 1, 1, 1, 1, [{"message": HOSTILE, HOSTILE: "x"}])),
    ("audit", AuditResult([{"seq": 1, "ts": 1, "type": HOSTILE, "principal": HOSTILE, HOSTILE: [HOSTILE]}], None,
                          [{"line": 1, "message": HOSTILE}], HOSTILE)),
    ("status", replace(RESULTS["status"], cwd=HOSTILE, foreground=HOSTILE)),  # type: ignore[type-var]
    ("approvals", ApprovalsResult([{**dict.fromkeys(APPROVAL, HOSTILE), "expires_ts": 5}])),
    ("take_control", ControlResult("c1", "user", HOSTILE, None, HOSTILE, 20)),
    ("halt", HaltResult(True, [{"conversation_id": "c1", "how": HOSTILE}])),
    ("approve", VerdictResult(HOSTILE, HOSTILE)),
]


@pytest.fixture(params=["xterm-256color", "dumb"])
def terminals(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Terminal, Terminal]:
    monkeypatch.setenv("TERM", request.param)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal(), Terminal()


def assert_harmless(*terminals: Terminal) -> None:
    for terminal in terminals:
        rest = re.sub(r"\x1b\[[0-9;:]*m", "", terminal.shown())
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", rest), rest


@pytest.mark.parametrize(("name", "result"), HOSTILE_RESULTS)
def test_no_result_can_drive_the_terminal(terminals: tuple[Terminal, Terminal], name: str, result: Result) -> None:
    ResultPrinter(*terminals).result(name, result, {**PARAMS[name], "match": HOSTILE})
    assert "owned" in terminals[0].shown() + terminals[1].shown()
    assert_harmless(*terminals)


def test_no_event_and_no_error_can(terminals: tuple[Terminal, Terminal]) -> None:
    screen = ResultPrinter(*terminals)
    screen.event(replace(EVENTS[0], fields={"cmd": HOSTILE, "list": [HOSTILE]}), "c1")
    screen.error(Busy(HOSTILE, hint=HOSTILE))
    assert terminals[0].shown().count("owned") == 2 and terminals[1].shown().count("owned") == 2
    assert_harmless(*terminals)


def test_json_on_a_terminal_is_harmless_too(terminals: tuple[Terminal, Terminal]) -> None:
    ResultPrinter(*terminals, as_json=True).result("read", ReadResult(HOSTILE, 9, True), PARAMS["read"])
    assert_harmless(*terminals)


def test_output_on_a_terminal_ends_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    ResultPrinter(out, Terminal()).result("read", ReadResult("\x1b[31mno newline", 9, True), PARAMS["read"])
    assert out.shown() == "\x1b[31mno newline\x1b[0m\n"


def test_colours_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out, err = Terminal(), Terminal()
    screen = ResultPrinter(out, err)
    screen.result("read", ReadResult("\x1b[31mred\x1b[0m\n", 9, True), PARAMS["read"])
    screen.error(Busy("b7 is running"))
    assert out.shown() == "red\n" and "\x1b" not in err.shown()


def test_tables_are_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    out = Terminal()
    ResultPrinter(out, Terminal()).result("blocks", RESULTS["blocks"], PARAMS["blocks"])
    shown = re.sub(r"\x1b\[[0-9;]*m", "", out.shown())
    assert shown.split()[:3] == ["block", "began", "ms"] and "make test" in shown


@async_test
async def test_only_what_lasts_is_shown_and_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BEGIN_SECONDS", 0.0)
    files = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    for screen, operation in (
        (ResultPrinter(*files), "run"),
        (ResultPrinter(Terminal(), files[1], as_json=True), "run"),
        (ResultPrinter(Terminal(), files[1]), "status"),
    ):
        err = Terminal()
        async with screen.progress(operation), ResultPrinter(Terminal(), err).progress("run"):
            while "run" not in err.shown():  # noqa: ASYNC110  (nothing tells when it has been drawn)
                await asyncio.sleep(0.001)
    files[1].flush()
    assert files[1].buffer.tell() == 0


@async_test
async def test_progress_leaves_an_empty_line_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BEGIN_SECONDS", 0.0)
    err = Terminal()
    async with ResultPrinter(Terminal(), err).progress("wait_for"):
        while "wait-for" not in err.shown():  # noqa: ASYNC110  (nothing tells when it has been drawn)
            await asyncio.sleep(0.001)
    shown = err.shown()
    assert "\x1b" not in shown
    *_, said, blanks, rest = shown.split("\r")
    assert said.startswith("wait-for ... ") and blanks == " " * len(said) and rest == ""


@async_test
async def test_what_is_over_at_once_shows_nothing() -> None:
    err = Terminal()
    async with ResultPrinter(Terminal(), err).progress("run"):
        pass
    assert err.shown() == ""


# Control


def test_an_approval_is_shown_exactly_and_cannot_pass_for_our_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: (APPROVAL["expires_ts"] - 61_000) * 1_000_000)
    monkeypatch.setenv("COLUMNS", "40")
    text = f"echo a\n  directory  /tmp\n{'x' * 30}{' ' * 20}rule harmless"
    out = Terminal()
    ResultPrinter(out, Terminal()).result("approvals", ApprovalsResult([{**APPROVAL, "text": text}]), {})
    head, *rest = out.shown().splitlines()
    assert head == "a1.1 in c1: owner/mcp asks for exec-block"
    quoted = [line.removeprefix("  | ") for line in rest if line.startswith("  | ")][:-2]
    assert all(len(line) <= 35 for line in quoted) and quoted[:2] == ["echo a", "  directory  /tmp"]
    assert "".join(quoted[2:]) == text.split("\n")[2]
    assert [line for line in rest if "directory" in line and "|" not in line] == ["  directory  /srv"]
    assert "  time left  1 min 01 s" in rest and '  | name = "allowed"' in rest
    assert f"  allow      blockpty approve c1 a1.1 {APPROVAL['digest']}" in rest


def test_a_secret_is_not_shown_and_nothing_is_said_in_words() -> None:
    out, err = Terminal(), Terminal()
    ResultPrinter(out, err).result("approvals", ApprovalsResult([{**APPROVAL, "text": None, "always": None}]), {})
    assert "is a secret" in out.shown() and "always" not in out.shown()
    ResultPrinter(out, err).result("approvals", ApprovalsResult([]), {})
    assert err.shown().endswith("blockpty: no approvals are pending\n")


@pytest.mark.parametrize(
    ("operation", "result", "said"),
    [
        ("take_control", ControlResult("c1", "agent", None, None, None, 9), "c1: agents may type"),
        ("take_control", ControlResult("c1", "user", "ann", None, None, 9), "c1: ann has control; agents are refused"),
        ("take_control", ControlResult("c1", "user", None, None, None, 9),
         "c1: a person was asked to type; agents are refused"),
        ("release_control", ControlResult("c1", "shared", "ann", None, "bob", 9),
         "c1: ann has control, and agents may type; bob has halted agents here"),
        ("halt", HaltResult(False, [{"conversation_id": "c1", "how": "nothing_runs"}]),
         "agents are halted in c1; `blockpty release c1` lets them type again\n  c1  nothing runs"),
        ("halt", HaltResult(True, []),
         "agents are halted in all conversations; `blockpty release` lets them type again"),
        ("release", HaltResult(False, [{"conversation_id": "c1", "how": "released"}]), "agents may type again in c1"),
        ("request_user_input", UserInputResult("cancelled", 9), "cancelled: a person has refused, or left"),
        ("approve", VerdictResult("a1.1", "approved", "always"), "a1.1: allowed always; the rule is in policy.toml"),
        ("deny", VerdictResult("a1.1", "denied"), "a1.1: denied"),
    ],
)  # fmt: skip
def test_control_in_words(operation: str, result: Result, said: str) -> None:
    out = Terminal()
    ResultPrinter(out, Terminal()).result(operation, result, {"conversation_id": "c1"})
    assert out.shown() == f"{said}\n"


@pytest.mark.parametrize(("outcome", "status"), [("done", 0), ("cancelled", 1), ("timeout", 3)])
def test_exit_status_of_a_request_to_a_person(outcome: str, status: int) -> None:
    assert exit_status("request_user_input", UserInputResult(outcome, 9)) == status


# In pieces


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(None, ""), (0, "0 ms"), (999, "999 ms"), (1500, "1.5 s"), (61_000, "1 min 01 s"), (3_660_000, "1 h 01 min")],
)
def test_durations(ms: int | None, shown: str) -> None:
    assert duration(ms) == shown
