"""The rows 80 to 106 of the table of scenarios: what goes in, how much, and what breaks from outside."""

from __future__ import annotations

from tests.scenarios import limits
from tests.scenarios.rows import Scenario, both, ok
from tests.scenarios.stage import Done

_STARTED = ("ok\n", 3, "ok", True)
_SIZE = {"0x0": "bad_request", "1001x24": "bad_request", "80x-1": "bad_request"}


def _stty(text: bytes) -> Done:
    return ok(text, 3)


LIMITS = (
    Scenario(80, "one line of 5, 20, 200 kB", "runs exactly as given", limits.long_lines,
             both([])),
    Scenario(81, "5 kB line to cat", "a line that the terminal would cut is refused, nothing of it is typed",
             limits.canonical_line, both(("line_too_long", True, 0))),
    Scenario(82, "5 kB command too early", "is kept by the engine, while a block runs and before the first prompt",
             limits.early_command,
             both((("timeout", [(0, True)]), ("no_prompt", "starting", []), (0, True, 1, True)))),
    # The terminator that is left is the one that the bracket itself ends with.
    Scenario(83, "end of a paste inside it", "has no power in a paste and is only bytes in a command",
             limits.paste_end, both((ok(b"a\x1b[201~b\x1b[200~c"), 1, 2, 0))),
    Scenario(84, "TAB, ^U, ^R, ^W, ESC", "control bytes of a command reach it literally", limits.control_bytes,
             both((ok(), True))),
    Scenario(85, "200 kB that no program reads", "typing ends at its deadline and says how much went in",
             limits.unread_input, both((True, "block_running", ("SIGINT", 130), ok(b"next\n"))),
             later="what was left unread stands on the next command line; until that is cleared, reset"),
    Scenario(86, "-x, leading space, trailing backslash", "the text is the command, in the history too",
             limits.odd_beginnings,
             both((ok(exit_status=127), ok(b"leading-space\n"), ok(b"a\n"), True, ok(b"next\n"),
                   ["-x 2>/dev/null", " echo leading-space", "echo a \\"]))),
    Scenario(87, "1 MB of environment", "works, or is refused with a reason", limits.large_environment,
             both((("100000 100000\n", 0), True, 1, ok(b"ok\n")))),
    Scenario(88, "cannot start", "no directory, no shell, ends at once: typed errors and no zombie",
             limits.cannot_start,
             both((dict.fromkeys(("directory", "shell", "ends at once"), "spawn_failed"), [], ok(b"ok\n")))),
    Scenario(89, "startup files", "ready is only the first authentic prompt", limits.startup_files,
             both(dict.fromkeys(("waits", "prints", "reads", "string", "hooks"), _STARTED)),
             later="the table of hostile startup files"),
    Scenario(90, "own hooks", "a DEBUG trap and an array of prompt commands of the user go on working",
             limits.own_hooks,
             both((ok(), [ok(b"one\n"), ok(exit_status=3), ok(b"a\nb\n")], ok(b"1\n"), 5, []))),
    # 100 conversations with 50 commands each: test_tortures.py.
    Scenario(91, "many conversations at once", "no cross-talk, nothing left open", limits.many_at_once,
             both({"wrong": [], "live": ["stays"], "grown": {}})),
    Scenario(92, "two waiters and a reader", "all get the same end", limits.several_waiters,
             both((True, "prompt", 3, ok(b"one\ntwo\n", 3)))),
    Scenario(93, "text in the past", "is found from a cursor before it and not from one after it",
             limits.text_in_the_past, both(("timeout", (True, "matched", True)))),
    Scenario(94, "text that is typed", "its echo is no output, unless asked for", limits.text_in_the_echo,
             both(((b"<needle>", True), "prompt"))),
    Scenario(95, "pattern that runs away", "is refused after a bounded time", limits.runaway_pattern,
             both(("bad_condition", ok(b"next\n")))),
    Scenario(96, "wait cancelled", "leaves no task, and the command alone", limits.cancelled_wait,
             both((5, 0, "block_running", ok(b"half\n", 3)))),
    Scenario(97, "timeout 0, negative, huge", "0 looks once; what is no time is refused", limits.wait_times,
             both({"there": (True, "matched"), "not there": (False, "timeout"),
                   **{repr(time): "bad_request" for time in (-1, 3_600_001, 1 << 70, 1.5, "1", None, True)}})),
    Scenario(98, "timeout at the very end", "one of two answers, and the end is there when asked again",
             limits.timeout_at_the_end, both(([], {(0, "ended")}))),
    # With two columns and one row the line editor of zsh 5.9 aborts by itself.
    Scenario(99, "resize to 1x1, 0x0, 1000x1000", "bounds are checked, marks survive any size", limits.sizes,
             both(({"1x1": ("accepted", _stty(b"1 1\n")), "1000x1000": ("accepted", _stty(b"1000 1000\n")),
                    **{size: (code, _stty(b"1000 1000\n")) for size, code in _SIZE.items()},
                    "80x24": ("accepted", _stty(b"24 80\n"))}, (80, 24), "ok", [])),
             later="two columns: bash leaves out a prompt there, and its late mark ends the next block"),
    Scenario(100, "engine killed", "the next one goes on with the open block; nothing is lost", limits.killed_engine,
             both((b"ready", ("block_running", True), True, [ok(b"before\n"), ok(b"half\nwhole\n", 3)], True))),
    Scenario(101, "other chunks", "the same record gives the same files however it is cut", limits.other_chunks,
             both(([], 5))),
    Scenario(102, "disk full", "the program waits, nothing is lost, and it goes on when there is space",
             limits.full_disk, both(("block_running", "storage_full", ((3, "ended"), True), ["full", "resumed"],
                                     ok(b"next\n")))),
    Scenario(103, "clock set back", "order is that of the record, never that of the times", limits.clock_jump,
             both((True, True, True))),
    Scenario(104, "end of the terminal", "EIO or end of file: one event `eof`, after the exit", limits.end_of_terminal,
             both(("eof", "exited", {"status": 4, "signal": None}, ["shell_exit", "eof"]))),
    Scenario(105, "foreign connections", "the socket and where it lies are the user's alone", limits.local_access,
             both((True, {"0o600"}, {"0o700"})), later="Host, Origin and token of a request: the HTTP server"),
    Scenario(106, "names with ../", "are refused, and make nothing", limits.names_with_paths,
             both(({"bad_request"}, True))),
)  # fmt: skip
