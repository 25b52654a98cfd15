"""The command line against a recording engine: arguments in, calls, exit status and text out."""

from __future__ import annotations

import atexit
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from blockpty.errors import Busy
from blockpty.model.results import (
    AuditResult,
    ListResult,
    ReadResult,
    RunResult,
    SearchResult,
    VerifyResult,
    WaitResult,
)
from blockpty.ops.operation import Effect
from blockpty.ops.requests import ConversationRequest
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.cli.commands import HAND_WRITTEN
from blockpty.surfaces.cli.main import main
from tests.support.cli_calls import Run, answering, program, run
from tests.support.operations import BLOCK, EVENTS, PARAMS, RESULTS, RecordingEngine

__all__ = ["run"]


def written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@functools.cache
def key_file(key: str) -> str:
    """Return the name of a file that holds a key: no key is ever an argument."""
    with tempfile.NamedTemporaryFile("w", prefix="key", delete=False) as file:
        file.write(f"{key}\n")
    atexit.register(os.unlink, file.name)
    return file.name


def command_line(name: str) -> list[str]:
    """Write the sample parameters of an operation as a command line: required ones bare, the others as options."""
    words = [name.replace("_", "-")]
    for parameter, field in OPERATIONS[name].request.model_fields.items():
        value = PARAMS[name][parameter] if parameter != "key" else key_file(PARAMS[name][parameter])
        option = f"--{parameter.replace('_', '-')}"
        if field.is_required():
            words.append(written(value))
        elif isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        else:
            words += [option, written(value)]
    return words


# From the command line to the call


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_parameter_can_be_given(run: Run, name: str) -> None:
    engine = RecordingEngine()
    status, _, errors = run(*command_line(name), engine=engine)
    assert status == 0
    assert all(line.startswith("blockpty: ") for line in errors.splitlines()), errors
    *_, (called, args, kwargs) = engine.calls
    expected = dict(PARAMS[name])
    if issubclass(OPERATIONS[name].request, ConversationRequest):
        assert engine.calls[0] == ("conversation", (expected.pop("conversation_id"),), {})
    positional = [item for item in OPERATIONS[name].positional if item in expected]
    assert called == name
    assert {**dict(zip(positional, args, strict=True)), **kwargs} == expected
    assert engine.closed


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_parameter_is_explained_by_help(run: Run, name: str) -> None:
    status, text, _ = run(name.replace("_", "-"), "--help")
    assert status == 0
    assert text.split("\n\n")[1].split() == OPERATIONS[name].doc.split("\n\n", maxsplit=1)[0].split()
    listed = " ".join(text.partition("\nArguments:\n")[2].split())
    for parameter, field in OPERATIONS[name].request.model_fields.items():
        assert (parameter.upper() if field.is_required() else f"--{parameter.replace('_', '-')}") in text
        if field.is_required() and parameter in OPERATIONS[name].positional and parameter != "conversation_id":
            assert f"{parameter.upper()} {' '.join(str(field.description).split()[:8])}" in listed
    assert "--home" in text and "--json" in text


def test_help_lists_every_command(run: Run) -> None:
    status, text, _ = run("--help")
    rows = [line for line in text.partition("\nShells:\n")[2].splitlines() if line.startswith("  ")]
    assert status == 0
    # Each once, on one line; import_recording is that of a method, and is called import here.
    expected = {name.replace("_", "-") for name in OPERATIONS} - {"import-recording"} | {"replay", *HAND_WRITTEN}
    listed = [row.split()[0] for row in rows]
    assert len(listed) == len(set(listed)) and set(listed) == expected
    assert all(len(row) <= 78 and row[22:].strip() for row in rows), rows


def test_several_words_are_one_command_with_these_arguments(run: Run) -> None:
    for words, command in (
        (("make test; ls",), "make test; ls"),
        (("--", "ls", "-la", "a b", "$HOME"), "ls -la 'a b' '$HOME'"),
        (("make", "test"), "make test"),
    ):
        engine = RecordingEngine()
        assert run("run", "c1", *words, engine=engine)[0] == 0
        assert engine.calls[-1][:2] == ("run", (command,))


def test_what_cannot_be_undone_is_asked_for(run: Run) -> None:
    for words in (["delete", "c1"], ["prune", "--keep-days", "1"], ["archive"]):
        engine = RecordingEngine()
        status, _, errors = run(*words, engine=engine)
        assert status == 2 and "--yes" in errors and engine.calls == []
        for option in ("--yes", "--dry-run"):
            assert run(*words, option, engine=engine)[0] == 0
        made = [keywords for name, _, keywords in engine.calls if name == words[0]]
        assert [one.get("dry_run", False) for one in made] == [False, True]


def test_a_command_that_was_meant_is_named(run: Run) -> None:
    for wrong, meant in (("exec_block", "exec-block"), ("serach", "search"), ("watc", "watch")):
        status, _, errors = run(wrong)
        assert status == 2 and f"Did you mean {meant}" in errors
    assert "Did you mean" not in run("nonsense")[2]


def test_a_search_without_a_match_says_so(run: Run) -> None:
    status, text, errors = run("search", "x", engine=answering("search", SearchResult([], None, False, [])))
    assert (status, text) == (1, "") and "nothing was found" in errors


def test_errors_name_commands_as_they_are_typed(run: Run) -> None:
    error = Busy("a block runs", hint="wait_for PROMPT, or exec_block with queue")
    errors = run("status", "c1", engine=answering("status", error))[2]
    assert "wait-for PROMPT, or exec-block with queue" in errors


def test_the_shell_outlives_the_command_line_by_default(run: Run) -> None:
    for arguments, persist in ((["open"], True), (["open", "--persist"], True), (["open", "--no-persist"], False)):
        engine = RecordingEngine()
        assert run(*arguments, engine=engine)[0] == 0
        assert engine.calls[-1][2]["persist"] is persist
    assert "outlives" in run("open", "--help")[1]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("text", "text"),
        ('{"regex": "a+"}', {"regex": "a+"}),
        ('["a", {"token": "EOF"}]', ["a", {"token": "EOF"}]),
        ('{"regex": ', '{"regex": '),
        ('"quoted"', '"quoted"'),
        ("42", "42"),
        ("null", "null"),
        ("PROMPT", "PROMPT"),
        ("", ""),
    ],
)
def test_a_condition_is_json_or_the_text_itself(run: Run, given: str, meant: Any) -> None:
    engine = RecordingEngine()
    assert run("wait-for", "c1", given, "--stop", given, engine=engine)[0] == 0
    _, args, kwargs = engine.calls[-1]
    assert args == (meant,)
    assert kwargs["stop"] == meant


def test_variables_are_given_one_by_one_or_as_json(run: Run) -> None:
    engine = RecordingEngine()
    assert run("open", "--env", "A=1=2", "--env", '{"B": "x", "C": "y"}', "--env", "D=", engine=engine)[0] == 0
    assert engine.calls[-1][2]["env"] == {"A": "1=2", "B": "x", "C": "y", "D": ""}
    assert run("open", "--env", "novalue")[0] == 2
    assert run("open", "--env", '{"A": 1}')[0] == 2


def test_an_optional_first_parameter_needs_no_name(run: Run) -> None:
    for arguments in (["read", "c1", "7"], ["read", "c1", "--from-cursor", "7"]):
        engine = RecordingEngine()
        assert run(*arguments, engine=engine)[0] == 0
        assert engine.calls[-1][1] == (7,)
    status, _, errors = run("read", "c1", "7", "--from-cursor", "8")
    assert status == 2 and "not both" in errors


def test_what_begins_with_a_dash_can_be_sent(run: Run) -> None:
    engine = RecordingEngine()
    assert run("send", "c1", "--", "--json", engine=engine)[0] == 0
    assert engine.calls[-1][1] == ("--json",)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--json", "--home", "there", "status", "c1"],
        ["status", "c1", "--json", "--home", "there"],
        ["--home", "there", "status", "--json", "c1"],
        ["--home", "elsewhere", "status", "--home", "there", "c1", "--json"],
    ],
)
def test_json_and_home_may_stand_anywhere(run: Run, arguments: list[str]) -> None:
    engine = RecordingEngine()
    status, text, _ = run(*arguments, engine=engine)
    assert status == 0
    assert json.loads(text) == RESULTS["status"].to_dict()
    assert engine.home == "there"


# Results


@pytest.mark.parametrize("name", RESULTS)
def test_json_is_the_result_on_one_line(run: Run, name: str) -> None:
    status, text, errors = run(*command_line(name), "--json")
    assert (status, errors) == (0, "")
    assert text.endswith("\n") and text.count("\n") == 1
    assert json.loads(text) == json.loads(json.dumps(RESULTS[name].to_dict()))


def test_json_is_ascii_and_keeps_controls_escaped(run: Run) -> None:
    engine = answering("read", ReadResult("\x1b]0;x\x07 \x9b ü \u202e", 4, True))
    _, text, _ = run("read", "c1", "--json", engine=engine)
    assert text.isascii() and text.rstrip("\n").isprintable()
    assert json.loads(text)["data"] == "\x1b]0;x\x07 \x9b ü \u202e"


def test_events_are_one_line_each(run: Run) -> None:
    status, text, _ = run("events", "c1", "--no-follow", "--json")
    assert status == 0
    assert [json.loads(line) for line in text.splitlines()] == [event.to_dict("c1") for event in EVENTS]
    status, text, _ = run("events", "c1", "--no-follow")
    assert [line.split()[0] for line in text.splitlines()] == ["3", "4"]
    assert "exit_status=0" in text


def test_output_goes_to_a_file_as_it_is(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    output = "\x1b[31mred\x1b[0m\r\n\x07 no newline ü"
    for arguments, result in (
        (["run", "c1", "x"], replace(RESULTS["run"], output=output)),  # type: ignore[type-var]
        (["read", "c1"], ReadResult(output, 9, True)),
    ):
        main(arguments, open_engine=answering(arguments[0], result))
        sys.stdout.flush()
        assert capfdbinary.readouterr().out == output.encode()


def test_raw_bytes_go_to_a_file_exactly(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    result = ReadResult("\ufffd\x00", 2, True, data_b64="/wA=")
    main(["read", "c1", "--view", "raw"], open_engine=answering("read", result))
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == b"\xff\x00"


def test_lists_are_lines_of_columns(run: Run) -> None:
    _, text, _ = run("list")
    assert text.startswith("c1\tidle\tbash\t42\t7\t9\t")
    _, text, errors = run("blocks", "c1", engine=RecordingEngine())
    assert text.startswith("b7\t") and text.endswith("\t1000\t0\t10\tmake test\n")
    assert "--page 1" in errors
    assert run("list", engine=answering("list", ListResult([])))[1] == ""


def test_a_command_of_several_lines_stays_on_one(run: Run) -> None:
    result = replace(RESULTS["blocks"], blocks=[replace(BLOCK, cmd="a\nb\tc\x1b[2J")])  # type: ignore[type-var]
    _, text, _ = run("blocks", "c1", engine=answering("blocks", result))
    assert text.count("\n") == 1 and text.endswith("a↵b c^[[2J\n")


# Exit statuses


def finished(state: str = "ended", exit_status: int | None = 0, *, reason: str = "prompt") -> RunResult:
    block = replace(BLOCK, state=state, exit_status=exit_status)
    return RunResult(block, "out\n", 4, False, reason == "timeout", reason, 20)


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (finished(), 0),
        (finished(exit_status=1), 1),
        (finished(exit_status=42), 42),
        (finished(exit_status=255), 255),
        (finished("interrupted", 130), 130),
        (finished("running", None, reason="timeout"), 3),
        (finished("shell_exited", None, reason="eof"), 4),
        (finished("running", None, reason="password"), 5),
        (finished("running", None, reason="input"), 5),
        (finished("running", None, reason="incomplete_input"), 5),
        (finished("running", None, reason="hooks_lost"), 1),
        (finished("rejected", None), 1),
    ],
)
def test_run_returns_the_status_of_the_command(run: Run, result: RunResult, status: int) -> None:
    for flags in ([], ["--json"]):
        assert run("run", "c1", "x", *flags, engine=answering("run", result))[0] == status


@pytest.mark.parametrize(
    ("matched", "reason", "status"),
    [
        (True, "matched", 0),
        (True, "prompt", 0),
        (True, "eof", 0),
        (False, "timeout", 3),
        (False, "eof", 4),
        (False, "prompt", 1),
        (False, "stopped", 1),
        (False, "password", 1),
        (False, "max_bytes", 1),
    ],
)
def test_a_wait_says_how_it_ended(run: Run, matched: bool, reason: str, status: int) -> None:
    result = WaitResult(matched, reason, 20, text="last words")
    for flags in ([], ["--json"]):
        assert run("wait-for", "c1", "x", *flags, engine=answering("wait_for", result))[0] == status
    _, text, errors = run("wait-for", "c1", "x", engine=answering("wait_for", result))
    # What the program printed, and nothing of ours between; how it ended is said beside it.
    assert text == "last words"
    assert (f"matched ({reason})" in errors) is matched
    assert ("no match" in errors) is not matched


def test_a_timeout_says_how_to_go_on(run: Run) -> None:
    engine = answering("run", finished("running", None, reason="timeout"))
    _, _, errors = run("run", "c1", "x", "--timeout-ms", "500", engine=engine)
    assert "500 ms" in errors and "b7 keeps running" in errors
    assert """blockpty wait-for c1 '{"token": "PROMPT"}' --from-cursor 20""" in errors
    engine = answering("wait_for", WaitResult(False, "timeout", 20))
    assert "blockpty wait-for c1 'two words' --from-cursor 20" in run("wait-for", "c1", "two words", engine=engine)[2]


def test_cut_output_says_its_size_and_where_the_rest_is(run: Run) -> None:
    result = replace(finished(), truncated=True, output_bytes=999_999)
    _, text, errors = run("run", "c1", "x", engine=answering("run", result))
    assert text == "out\n"
    assert "999999" in errors and "blockpty read c1 --block-id b7" in errors


def test_verify_and_replay_fail_on_a_difference_and_show_the_first(run: Run) -> None:
    differences = [
        {"invariant": "blocks", "where": "b7", "message": "first one"},
        {"invariant": "waits", "where": "w1.1", "message": "second one"},
    ]
    for arguments in (["verify", "c1"], ["replay", "c1", "--verify"], ["replay", "--verify", "c1", "--json"]):
        assert run(*arguments)[0] == 0
        engine = answering("verify", VerifyResult(False, 20, 3, 1, 0, differences))
        status, text, _ = run(*arguments, engine=engine)
        assert status == 1
        assert "first one" in text and ("--json" in arguments or "second one" not in text)
    assert run("replay", "c1")[0] == 2


def test_the_audit_reads_downwards_and_fails_on_a_finding(run: Run) -> None:
    entries = [
        {"seq": 9, "ts": 3, "type": "token_use", "principal": "ann", "conversation_id": None, "address": "x"},
        {"seq": 8, "ts": 3, "type": "lifecycle", "principal": "owner", "conversation_id": "c1", "on": True},
    ]
    status, text, errors = run("audit", engine=answering("audit", AuditResult(entries, 8)))
    assert status == 0
    first, second = text.splitlines()
    assert first.split()[0] == "8" and "lifecycle" in first and "owner" in first and "on=true" in first
    assert second.split()[0] == "9" and "address=x" in second
    assert "--page 8" in errors
    assert run("audit", "--verify", engine=answering("audit", AuditResult([], findings=[], head="ab")))[:2] == (
        0, "no findings; digest ab\n",
    )  # fmt: skip
    found = AuditResult([], findings=[{"line": 3, "message": "is damaged"}], head="ab", dropped=2)
    status, text, errors = run("audit", "--verify", engine=answering("audit", found))
    assert (status, text) == (1, "line 3 is damaged\n1 finding; digest ab\n")
    assert "2 were dropped" in errors


READING = [name for name, operation in OPERATIONS.items() if operation.effect is Effect.READ]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("before", [True, False])
def test_read_only_lets_nothing_but_reading_through(run: Run, name: str, before: bool) -> None:
    engine = RecordingEngine()
    line = command_line(name)
    arguments = ["--read-only", *line] if before else [*line, "--read-only"]
    status, text, _ = run(*arguments, "--json", engine=engine)
    if name in READING:
        assert status == 0 and engine.calls
    else:
        assert (status, json.loads(text)["error"]["code"], engine.calls) == (1, "forbidden", [])


# Text from elsewhere


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def given(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return given


@pytest.mark.parametrize(
    ("operation", "data", "meant"),
    [
        ("run", b"echo a\necho b\n\n", "echo a\necho b"),
        ("exec-block", b"--json", "--json"),
        ("exec-interactive", b"python3\n", "python3"),
        ("send", "yes ü\n".encode(), "yes ü\n"),
        ("paste", b"a\nb\n", "a\nb\n"),
        ("send", b"", ""),
    ],
)
def test_text_can_come_from_standard_input(
    run: Run, stdin: Callable[[bytes], None], operation: str, data: bytes, meant: str
) -> None:
    stdin(data)
    engine = RecordingEngine()
    assert run(operation, "c1", "--stdin", engine=engine)[0] == 0
    assert engine.calls[-1][1] == (meant,)


def test_bytes_from_standard_input_are_sent_exactly(run: Run, stdin: Callable[[bytes], None]) -> None:
    stdin(b"\xff\x00")
    engine = RecordingEngine()
    assert run("send", "c1", "--stdin", engine=engine)[0] == 0
    assert engine.calls[-1][2]["data_b64"] == "/wA="
    stdin(b"\xff\x00")
    assert run("run", "c1", "--stdin")[0] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "c1"],
        ["paste", "c1"],
        ["run", "c1", "true", "--stdin"],
        ["send", "c1", "x", "--stdin"],
        ["send", "c1", "--data", "x", "--stdin"],
        ["send", "c1", "--data-b64", "eA==", "--stdin"],
        ["send", "c1", "--stdin", "--hidden"],
        ["send", "c1", "x", "--hidden"],
        ["send", "c1", "--hidden", "--author", "agent"],
        ["status", "c1", "--stdin"],
    ],
)
def test_text_comes_from_one_place(run: Run, stdin: Callable[[bytes], None], arguments: list[str]) -> None:
    stdin(b"from stdin")
    engine = RecordingEngine()
    assert run(*arguments, engine=engine)[0] == 2
    assert engine.calls == []


# What a plain call may not load: an event loop, a client with its methods, models, and classes of other results.
SLOW = {
    "asyncio", "blockpty.control", "blockpty.model.conditions", "blockpty.model.events", "blockpty.ops.table",
    "blockpty.runtime", "blockpty.surfaces.client", "blockpty.surfaces.operation_methods", "hashlib", "httpcore2",
    "httpx2", "logging", "orjson", "pydantic", "random", "regex", "rich", "shutil", "ssl", "subprocess", "tempfile",
}  # fmt: skip


def test_a_call_to_a_server_that_runs_loads_little(home: Path) -> None:
    code = (
        "import sys; from blockpty.surfaces.cli.main import main; status = main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    assert program("open", "c1").returncode == 0
    for arguments, classes in (
        (["status", "c1"], {"shell"}),
        (["run", "c1", "--", "true"], {"command"}),
        (["list"], {"list"}),
        (["wait-for", "c1", '{"token": "PROMPT"}'], {"wait"}),
        (["read", "c1", "0"], {"transcript"}),
        (["screen", "c1"], {"screen"}),
        (["search", "true", "--json"], {"search"}),
        (["close", "c1", "--json"], {"shell"}),
    ):
        found = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
        assert found.returncode == 0, found.stderr
        loaded = set(found.stderr.splitlines()[-1].split())
        assert not loaded & SLOW, arguments
        results = {name.rpartition(".")[2] for name in loaded if name.endswith("_results")}
        assert results == {f"{one}_results" for one in classes}, arguments


def test_the_shell_can_complete_commands_and_options() -> None:
    words = program(_BLOCKPTY_COMPLETE="bash_complete", COMP_WORDS="blockpty exec-", COMP_CWORD="1")
    assert [line.partition(",")[2] for line in words.stdout.splitlines()] == ["exec-block", "exec-interactive"]
    words = program(_BLOCKPTY_COMPLETE="bash_complete", COMP_WORDS="blockpty run --ti", COMP_CWORD="2")
    assert words.stdout.splitlines() == ["plain,--timeout-ms"]


def test_a_reader_that_goes_away_is_no_failure_of_ours() -> None:
    code = (
        "import sys; from blockpty.surfaces.cli.main import main; "
        "from tests.support.operations import RecordingEngine; "
        "import tests.support.operations as s; s.EVENTS = s.EVENTS * 100_000; "
        "sys.exit(main(['events', 'c1'], open_engine=RecordingEngine()))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


def test_what_draws_a_screen_is_no_text(run: Run) -> None:
    asks = finished("running", None, reason="input")
    drawn = replace(asks, output="~    ~    ~", tty="alt_screen", hint="send_keys q")
    status, text, errors = run("run", "c1", "vim", engine=answering("run", drawn))
    assert status == 5 and text == ""
    assert "blockpty screen c1" in errors and "send-keys q" in errors
