"""The table of scenarios: number, what happens, who plays it, and what must come out in each shell.

Rules of this file: `expected` is the whole answer. The functions only collect what was observed and check nothing, so
where bash and zsh differ it is seen here. The numbers are those of the survey of terminal tools from which the list was
made.
"""

from __future__ import annotations

from typing import Any

from tests.scenarios import ending, jobs, output, plain
from tests.scenarios.rows import NotApplicable, Scenario, both, ok
from tests.scenarios.stage import Done
from tests.scenarios.table_interaction import INTERACTION
from tests.scenarios.table_limits import LIMITS

__all__ = ["ENDING", "INTERACTION", "JOBS", "LIMITS", "OUTPUT", "PLAIN", "SCENARIOS", "NotApplicable", "Scenario"]


def _exit(output: bytes, status: int | None, signal: str | None = None) -> dict[str, Any]:
    """Return the facts of a command that ended the shell."""
    return {
        "done": Done(status, "shell_exited", output),
        "signal": signal,
        "reason": "eof",
        "mode": "exited",
        "exit": {"status": status, "signal": signal},
        "events": ["shell_exit", "eof"],
    }


_LATER = {
    "later": dict.fromkeys(
        ("exec_block", "exec_interactive", "run", "send", "ctrl_c", "interrupt", "resize"), "exited"
    ),
    "later wait": (False, "eof"),
}
_RESPAWNED = {"later": "exited", "respawned": ("idle", True), "fresh": ok(b"fresh\n")}
_REPLACED = (False, "hooks_lost", "degraded", True, "no_prompt", "shell_exited", ok(b"back\n"), "ok")
_REPAIRED = (False, "hooks_lost", "degraded", True, "accepted", "ended", ok(b"back\n"), "ok")

PLAIN = (
    Scenario(1, "true / false", "one block each with its status, and no output at all, not even a line end",
             plain.true_and_false, both(([ok(), ok(exit_status=1)], ["true", "false"]))),
    Scenario(2, "printf x", "output without a line end is exactly that; no mark or padding of zsh in it",
             plain.no_newline, both((ok(b"x"), "x"))),
    Scenario(3, "blank lines", "line ends at both ends of the output are kept", plain.newlines,
             both(ok(b"\n\nx\n\n\n"))),
    Scenario(4, "empty line, blanks, comment",
             "typing nothing makes no block and repeats no status; the prompt stays ready",
             plain.nothing_typed, both(([("idle", "at_prompt")] * 3, ["false"], ["b1"]))),
    Scenario(5, "(a",
             "submitted, an unfinished command is an error; typed, it is called incomplete and the engine clears it",
             plain.open_parenthesis,
             {shell: {
                 "submitted": (status, "rejected", True), "after": ok(b"usable\n"),
                 "typed": (False, "incomplete_input", "incomplete_input"), "after typed": ok(b"usable\n"),
                 # The engine clears what it has submitted, too.
                 "cleared by": ["engine", "user", "engine"], "blocks": ["(a", "echo usable", "echo usable"],
             } for shell, status in (("bash", 2), ("zsh", 1))}),
    Scenario(6, ")", "the syntax error is in the transcript with the shell's status; the next command is normal",
             plain.stray_parenthesis,
             {"bash": (2, "rejected", True, ok(b"next\n")), "zsh": (1, "rejected", True, ok(b"next\n"))}),
    Scenario(7, "echo 'unclosed", "a typed open quote is reported as incomplete input at once, and may be completed",
             plain.unclosed_quote,
             {shell: {
                 "submitted": (status, "rejected"), "typed": (False, "incomplete_input", "incomplete_input"),
                 "completed": ("user", ok(b"unclosed\nclosed\n")),
             } for shell, status in (("bash", 2), ("zsh", 1))}),
    Scenario(8, "a; b; c and a && b", "a compound command is one block",
             plain.compound,
             both(([ok(b"a\nb\nc\n"), ok(b"a\nb\n"), ok(b"a\n", 1)],
                   [("echo a; echo b; echo c", 1), ("echo a && echo b", 1), ("echo a | cat; false", 1)]))),
    Scenario(9, "three lines", "one call is one block with all the output in order, errors too",
             plain.three_lines, both((ok(b"one\ntwo\nthree\n"), 1, "echo one\necho two >&2\necho three"))),
    Scenario(10, "function over five lines", "the definition and a later call of it both work",
             plain.function_definition, both((ok(), ok(b"hi Bob\n", 4)))),
    Scenario(11, "here-documents", "tabs, dollar signs and backslashes arrive byte for byte, quoted end word or not",
             plain.heredocs, both((ok(), b"\tA $VAR `x` \\\\n\n\t\tend\n", b"\tA value$\n"))),
    Scenario(12, "here-document of 2,000 lines", "200 kB go in whole and nothing blocks", plain.long_heredoc,
             both((ok(b"2000\n"), True))),
    Scenario(13, "[[ ]] and arrays", "text that looks like a pattern or an assignment is only a command",
             plain.tests_and_arrays, both((ok(), ok(exit_status=1)))),
    Scenario(14, "python here-document", "quotes of both kinds and backslashes are intact", plain.python_heredoc,
             both(ok(b"it's a \"quote\" \t \\\n"))),
    Scenario(15, "exclamation marks", "no history expansion, submitted or typed", plain.exclamation_marks,
             both(([ok(b"A!B\n"), ok(b"wow!!\n"), ok(b"!echo\n"), ok(b"!!\n")],) * 2)),
    Scenario(16, "cd, then pwd", "block, status and exact bytes follow the directory, whatever its name; so does `cwd`",
             plain.directories, both(([], b"/tmp\n"))),
    Scenario(17, "export", "the shell keeps its state between calls", plain.exported, both((ok(), ok(b"12\n1\n")))),
    # The last is the price of submitting through `.`, which is itself a command: a bare shell gives 0 there too.
    Scenario(18, "pipe status", "the hooks leave the statuses of the last pipeline alone", plain.pipe_status,
             both({"typed": ok(b"1 0\n"), "one block": ok(b"1 0\n"), "two blocks": [ok(), ok(b"1 0\n")]})),
    Scenario(19, "$_", "the hooks leave the last argument alone", plain.last_argument,
             both({"typed": ok(b"last\n"), "one block": ok(b"last\nlast\n"), "two blocks": ok(b"other\n"),
                   "behind lines": ok(b"three\n")})),
    Scenario(20, "! true", "a negated status is the status, inside the block and after it", plain.negation,
             both((ok(b"1\n"), ok(exit_status=1), ok(b"1\n")))),
)  # fmt: skip

ENDING = (
    Scenario(21, "exit 5",
             "the end of the shell closes the block with its status; later calls are refused at once, none hangs",
             ending.exit_with_status,
             {"bash": {**_exit(b"exit\n", 5), **_LATER}, "zsh": {**_exit(b"", 5), **_LATER}}),
    Scenario(22, "set -e, false",
             "a shell ended by errexit is reported as such; a fresh one goes on in the same conversation",
             ending.errexit, both({**_exit(b"", 1), **_RESPAWNED})),
    Scenario(23, "set -u, unset name",
             "an unset name fails the command; with errexit it ends the shell, and that is said",
             ending.unset_name,
             {shell: {"alone": (status, "ended", True), "alive": ok(b"alive\n"), "all": (1, "shell_exited", "eof",
             "exited")}
              for shell, status in (("bash", 1), ("zsh", 1))}),
    Scenario(24, "set -e; exec 1>&-", "a hook that cannot write to stdout does not kill the shell",
             ending.closed_stdout,
             both(([ok(), ok(), ok(b"seen\n"), ok()], "idle"))),
    Scenario(25, "set -x", "traces are output; none is taken for a mark", ending.trace,
             both({"endings": [(0, "ended")] * 4, "hi": [0, 1, 0, 1], "blocks": 4, "doubts": []})),
    Scenario(26, "shell options", "marks survive options that change how everything is read", ending.options,
             {"bash": {"statuses": [0] * 8, "wrong": [], "integrity": "ok", "doubts": []},
              "zsh": {"statuses": [1, *[0] * 8], "wrong": [], "integrity": "ok", "doubts": []}}),
    Scenario(27, "kill -9 $$", "a killed shell closes its block without a status, with the signal", ending.killed_shell,
             both(_exit(b"last words\n", None, "SIGKILL"))),
    Scenario(28, "EXIT trap", "what the trap prints belongs to the block", ending.exit_trap,
             {"bash": _exit(b"exit\nbye\n", 0), "zsh": _exit(b"bye\n", 0)}),
    Scenario(29, "exec another shell",
             "a replaced shell is reported, waits end; one we know gets the hooks, reset cures others",
             ending.replaced_shell,
             both([_REPAIRED, _REPLACED])),
    Scenario(30, "hooks unset", "hooks that a command takes away come back; no command is lost", ending.hooks_unset,
             both({"wrong": [], "last": None, "blocks": 16})),
    Scenario(31, "printf disguised",
             "an alias or a function of that name changes nothing; without printf no status is invented",
             ending.disguised_printf,
             {shell: {
                 "alias printf=false": ([(0, "ended"), (0, "ended"), (3, "ended")], b"two\n", "ok"),
                 "printf() { :; }": ([(0, "ended"), (0, "ended"), (3, "ended")], b"two\n", "ok"),
                 "disabled": ([(0, "ended"), (3, "ended")], b"two\n", [uncertain] * 2, integrity),
             } for shell, uncertain, integrity in (("bash", True, "degraded"), ("zsh", False, "ok"))}),
    Scenario(32, "exec >/dev/null", "the end is seen although stdout or stderr leads nowhere", ending.redirected,
             both({"out": [ok(), ok(), ok(exit_status=3), ok(), ok(), ok(b"again\nerr\n")],
                   "err": [ok(), ok(b"hi\n"), ok(exit_status=3), ok(), ok(), ok(b"again\nerr\n")],
                   "last": None, "blocks": 12})),
    # Inside `.` bash forgets its warning and zsh repeats it for ever, without any hooks as well.
    Scenario(33, "exit with a stopped job", "the shell warns once and stays, then goes", ending.stopped_job,
             {"bash": {"stopped": 148, "first exit": (1, "ended", True), "second exit": "eof", "stopped again": 148,
                       "submitted": [(1, "ended", True), (1, "shell_exited", False)]},
              "zsh": {"stopped": 148, "first exit": (0, "ended", True), "second exit": "eof", "stopped again": 148,
                      "submitted": [(0, "ended", True), (0, "shell_exited", False)]}}),
    Scenario(34, "Ctrl-D at the prompt", "ends the shell with status 0 and makes no block", ending.ctrl_d,
             both(("eof", "exited", {"status": 0, "signal": None}, 0))),
    Scenario(35, "child that ignores the hang-up",
             "the exit is reported at once, the end of the terminal apart; late output is kept",
             ending.late_output,
             both({"exit": ("eof", "exited", {"status": 3, "signal": None}, ["shell_exit"]), "block": (3,
             "shell_exited"),
                   "late": True, "end": ["shell_exit", "eof"]})),
)  # fmt: skip

JOBS = (
    Scenario(36, "sleep, interrupt", "status 130, the signal's name, and the prompt is back", jobs.interrupted,
             both(([("SIGINT", "prompt", 130, "SIGINT", "interrupted")] * 11, ok(b"next\n")))),
    Scenario(37, "interrupt ignored, then quit", "an interrupt without effect is said to be one; the next step helps",
             jobs.interrupt_ignored, both(("running", ("timeout", "block_running"), "SIGQUIT", (131, "SIGQUIT"),
             ok(b"next\n")))),
    Scenario(38, "less, interrupt, q", "a pager survives the interrupt and leaves the terminal in order", jobs.pager,
             both({"reading": ("interactive", True, True), "interrupted": ("running", True),
                   "quit": ("prompt", "session", 0, "ended"), "after": ("idle", None, ok(b"next\n"))})),
    Scenario(39, "Ctrl-Z, fg, interrupt", "a suspended program ends its block with 148 and goes on in another",
             jobs.suspended,
             both({"stopped": (148, "stopped"), "resumed": ("SIGINT", 130, "SIGINT", "interrupted"), "jobs": b""})),
    Scenario(40, "job &", "the block ends at once; the notice of the job's end lies in no command's block",
             jobs.job_notice,
             both((0, (0, "ended"), ok(b"two\n"), True))),
    Scenario(41, "late background output", "what a job prints after its block is a background block",
             jobs.orphan_output,
             both((b"now", ok(b"two\n"), True, True))),
    Scenario(42, "( ... ) &", "returns while the job runs", jobs.subshell_in_background,
             both((("prompt", 0, "ended"), b"alive\n", 0))),
    Scenario(43, "yes", "a flood gives a bounded result with its size, in bounded memory, and can be interrupted",
             jobs.flood,
             both({"running": (True, "timeout", "running", None), "limits": (True, True, True), "ends": (True, True),
                   "interrupted": ("SIGINT", 130, "interrupted"), "next": ok(b"next\n"), "memory": True}), slow=True),
    Scenario(44, "nohup server, close", "closing leaves nothing of the session behind", jobs.left_server,
             both((True, True, False, "exited"))),
    Scenario(45, "Ctrl-C in a here-document", "cancels what was typed; nothing is queued behind it",
             jobs.cancelled_heredoc,
             both({"open": ("incomplete_input", "incomplete_input"), "cancelled": ("idle", "at_prompt"),
             "next": ok(b"ok\n"),
                   "blocks": ["echo ok"]})),
    Scenario(46, "killed from outside", "status 143 and the name of the signal", jobs.killed_from_outside,
             both((143, "SIGTERM", "ended", ok(b"next\n")))),
)  # fmt: skip

_LONG = {"block": (0, "ended", True, True), "preview": (True, True), "memory": "constant", "next": ok(b"next\n")}

OUTPUT = (
    Scenario(64, "seq 1 300000", "all of it is in the spool; the preview is bounded and says the whole size",
             output.many_lines,
             both({"spool": (0, 1_988_895, True), "preview": (True, True, True), "ends": (True, True),
             "says the size": True})),
    Scenario(65, "lines of 5 and 600 MB", "kept whole in constant memory (short runs: 30 MB; zsh and fish 10 MB)",
             output.long_line, both((_LONG, _LONG)), slow=True),
    Scenario(66, "random bytes", "the bytes are exact, text has replacements, and no mark is seen in them",
             output.random_bytes,
             both({"exact": (0, True, True, True), "text": (True, True), "next": ok(b"next\n"), "blocks": 2,
             "doubts": []})),
    Scenario(67, "encodings", "bytes are exact; text is decoded across reads and pages, invalid bytes are replaced",
             output.encodings,
             both({"exact": True, "decoded": True, "in pieces": {7: True, 64: True, 65536: True},
                   "split": ("matched", True, False, "🙂"), "joined": ok("<🙂>".encode())})),
    Scenario(68, "NUL, unfinished OSC", "the end is recognised behind them", output.nul_and_unfinished_osc,
             both([ok(b"a\0b\0"), ok(b"\x1b]"), ok(b"\x1b]0;title"), ok(b"\x1b]7717;__END__;", 3), ok(b"ok\n")])),
    Scenario(69, "modes left behind",
             "no mode and no open sequence of the last program hides or changes the next block",
             output.left_modes, both({"wrong": [], "integrity": "ok", "degraded": [], "doubts": []})),
    Scenario(70, "progress bar", "raw keeps every step, the rendered view shows the last", output.progress_bar,
             both((b"\rA\rB\r100%\r\n", b"\rA\rB\r100%\n", "100%\n"))),
    Scenario(71, "coloured word", "text matches across a colour change and its span covers it; raw does not match",
             output.coloured_word,
             both({"text": ("red", b"re\x1b[31md"), "regex": ("red", True), "raw": (False, "prompt")})),
    Scenario(72, "prompt-looking output", "is not a prompt", output.looks_like_a_prompt,
             both(("matched", "timeout", "block_running", (3, "ended"), 1))),
    Scenario(73, "classic markers", "marker strings of other tools have no effect", output.classic_markers,
             both(("timeout", "block_running", True, True, ["prompt", "agent_block_end", "prompt"]))),
    Scenario(74, "forged marks",
             "without nonce, of another process, replayed: refused, reported, and the block stays open",
             output.forged_marks,
             both({"still open": ("timeout", "block_running", True), "reported": True, "done": (3, "ended", True),
                   "next": ok(b"next\n"), "blocks": 3})),
    Scenario(75, "cat of the transcript", "its real marks are old, and refused", output.own_transcript,
             both({"done": (3, "ended"), "refused": True, "reasons": True, "next": ok(b"next\n"), "blocks": [1, 2, 3,
             4, 5]})),
    Scenario(76, "declare -f, set, env, history", "the nonce is in no environment and in nothing derived",
             output.shown_hooks,
             both({"derived": [], "environment": [], "next": ok(exit_status=3), "blocks": True})),
    Scenario(77, "marks cut at every byte", "the same record in any pieces gives the same events", output.cut_marks,
             both(([], True, True))),
    Scenario(78, "silence after BEGIN, EINTR", "neither is an end", output.silent_beginning,
             both(("matched", [], "block_running", ok(b"out\n")))),
    # 500 times: test_tortures.py.
    Scenario(79, "echo bye; exit, many times", "output just before the exit is never lost", output.last_words,
             both(([], 20))),
)  # fmt: skip

SCENARIOS = (*PLAIN, *ENDING, *JOBS, *INTERACTION, *OUTPUT, *LIMITS)
