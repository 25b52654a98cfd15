"""The catalogue of edge cases of shell integration: what each one is, and what shows that it is right.

Rules of this file: every item is either played (then `expected` judges, as in the table of scenarios), or covered by
rows and tests that are named, or cannot happen here, with the reason. The numbers are those of the study of shell
integration from which the list was made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.scenarios import quirks
from tests.scenarios.rows import NotApplicable, both, ok
from tests.scenarios.stage import Stage

BASH = "tests/shellrc/test_bash.py::"
ZSH = "tests/shellrc/test_zsh.py::"
FISH = "tests/shellrc/test_fish.py::"


@dataclass(frozen=True, slots=True)
class Item:
    """One edge case.

    Attributes:
        number: as in the study.
        text: what happens, and what must come of it.
        play, expected: as in a scenario, where the item has a play of its own.
        covered: numbers of scenarios, and identifiers of tests, that show it as well or instead.
        reason: why it cannot happen here; then there is nothing else.
        later: what of it this version cannot show.
    """

    number: int
    text: str
    play: Callable[[Stage], Awaitable[Any]] | None = None
    expected: Mapping[str, Any] = field(default_factory=dict)
    covered: tuple[int | str, ...] = ()
    reason: str = ""
    later: str = ""


HEALTHY = (True, "ok", [])
SET = (0, "ended", HEALTHY)
_BASH_ONLY = NotApplicable("zsh has no PS0")
_ZSH_ONLY = NotApplicable("bash has no such hook")
_REPEATED = ([1, 1, 0, 0, 1], ["false", "false", "true", "true", "false"])

ITEMS = (
    Item(1, "empty Enter: no block, the status stays", covered=(4, BASH + "test_nothing_to_run")),
    Item(2, "Ctrl-C at the prompt: no block, the line is gone",
         covered=("tests/scenarios/test_faults.py::test_ctrl_c_at_the_prompt", BASH + "test_interrupt_at_the_prompt",
                  FISH + "test_cancelled_line")),
    Item(3, "a typed syntax error never ran: no block, and no wrong status for the next",
         quirks.typed_syntax_error, both((None, HEALTHY, 2)), (5, 6, FISH + "test_syntax_error_stays_on_the_line")),
    Item(4, "a comment runs nothing", covered=(4, ZSH + "test_comment")),
    Item(5, "a typed history event that does not exist is given back; submitted text is never expanded",
         quirks.typed_event, both((SET, True, ok(b"!nosuchevent\n"), HEALTHY, 6)), (15,)),
    # The second part's OSC 133;C is ours and is part of its BEGIN, hence in no output.
    Item(6, "several lines typed at once all run, each ended by its own prompt; pasted, they are one block",
         quirks.typed_lines,
         both(([b"one", b"two", b"last"], {("user", "ended")}, [("user", "ended", b"one\ntwo\nlast\n")], HEALTHY)),
         (9,)),
    Item(7, "a here-document and more commands behind it are one block", quirks.heredoc_and_more,
         both((ok(b"$HOME\nafter\n", 3), 1)), (11, 12)),
    Item(8, "here-document in fish", covered=(FISH + "test_here_document",)),
    Item(9, "subshells, groups and functions have a begin like any command", quirks.groups,
         both(({ok(b"a\n")}, {1}, 5))),
    Item(10, "a subshell in the background does not end the session", covered=(42,)),
    Item(11, "the handler of a SIGINT trap is no command", quirks.trap_handler,
         both((HEALTHY, ["trap 'echo handled' INT", "echo ok"]))),
    Item(12, "a key that runs a command from the line editor makes no block", quirks.key_command,
         both((True, HEALTHY, ["echo ok", "printf x; sh -c 'exit 3'"]))),
    Item(13, "elements of PROMPT_COMMAND are no commands", covered=(90,)),
    Item(14, "several entries in PROMPT_COMMAND keep begin before end", covered=(90, BASH + "test_startup_files")),
    Item(15, "a DEBUG trap of the user stays, and so does what it returns",
         covered=(90, BASH + "test_debug_trap_is_left_alone", BASH + "test_extdebug_with_a_refusing_trap")),
    Item(16, "the status is right with other hooks present",
         covered=(90, BASH + "test_prompt_command_sees_the_status", ZSH + "test_status_is_kept",
                  FISH + "test_prompt_sees_the_status")),
    Item(17, "the same command again is another block with its own status", quirks.repeated,
         {"bash": (*_REPEATED, ok(b"erasedups:ignoreboth\n"), HEALTHY), "zsh": (*_REPEATED, ok(b"kept\n"), HEALTHY)}),
    Item(18, "HISTCONTROL=erasedups changes nothing: played with 17", covered=(BASH + "test_history",)),
    Item(19, "HISTTIMEFORMAT is in no command text: the text comes from who submitted it", covered=(17, 86)),
    Item(20, "ignorespace stays as the user has it", covered=(86, BASH + "test_history")),
    Item(21, "PROMPT_COMMAND that ends in a semicolon", covered=(89, BASH + "test_startup_files")),
    Item(22, "the way in leaves no posix mode, no inherit_errexit and no history file of the user's in use",
         quirks.options_kept, both((ok(b"1\n1\n"), ok(b"own\n"))), (26,)),
    Item(23, "failglob and nullglob break no hook", quirks.failglob,
         {"bash": (SET, True, HEALTHY), "zsh": (SET, False, HEALTHY)}),
    Item(24, "a prompt with command substitutions and line ends keeps its marks", quirks.prompt_with_code, both(SET)),
    Item(25, "a PS0 of the user's does not damage the mark", quirks.foreign_ps0,
         {"bash": (0, b"a\n", "ok"), "zsh": _BASH_ONLY}),
    Item(26, "PS0 is set once, not in a trap", covered=(BASH + "test_removed_hooks_heal",)),
    Item(27, "promptvars switched off", quirks.no_promptvars, both(SET)),
    Item(28, "PS0 emptied at each prompt comes back", quirks.rewritten_ps0,
         {"bash": (0, [ok(b"a\n"), ok(exit_status=3), ok(b"b\n")]), "zsh": _BASH_ONLY}),
    Item(29, "set -u in the shell harms no hook", quirks.nounset, both(SET), (23,)),
    Item(30, "set -euo pipefail: a failing command ends the shell, no hook does", covered=(22, 23, 24)),
    Item(31, "set -x: no mark is broken or faked by a trace", covered=(25, BASH + "test_xtrace_shows_nothing_of_ours")),
    Item(32, "a prompt that is rebuilt each time keeps its marks", quirks.rebuilt_prompt, both(SET)),
    Item(33, "zsh's mark for a missing line end is not in the output", covered=(2, ZSH + "test_output_ends_exactly")),
    Item(34, "a zle-line-init of the user's does not recurse with ours", quirks.line_init,
         {"bash": _ZSH_ONLY, "zsh": SET}),
    Item(35, "a theme that prints marks of other protocols", quirks.foreign_marks, both(SET), (73,)),
    Item(36, "a prompt drawn again by the line editor is no new prompt", quirks.reset_prompt,
         {"bash": NotApplicable("bash has no reset-prompt; Ctrl-L: 59"), "zsh": (0, HEALTHY)}),
    Item(37, "a job's notice between END and PROMPT is in no block", covered=(40,)),
    Item(38, "output of a job after the prompt is in no block", covered=(41,), later="blocks of kind background"),
    Item(39, "a mark is one write, so no output can come between its bytes",
         covered=(77, "tests/engine/test_marks.py::test_a_mark_fits_one_write")),
    Item(40, "no value in a mark needs quoting",
         covered=(16, BASH + "test_directories", ZSH + "test_directories", FISH + "test_directory")),
    Item(41, "the prompt's text in the output is not a prompt", covered=(72, 76)),
    Item(42, "codes of bracketed paste are in no output", quirks.no_paste_codes, both([b"a\n", b"b\n"])),
    Item(43, "a command sent before the shell is ready waits", covered=(82, 89)),
    Item(44, "no command is cut at 4,095 bytes", covered=(80, 81)),
    Item(45, "a mark in two reads is a mark", covered=(77, 101)),
    Item(46, "no output is lost at the begin or the end", covered=(78, 79)),
    Item(47, "133;A in a prompt that is drawn again",
         covered=(BASH + "test_foreign_terminals_get_their_zones", FISH + "test_osc_133_is_not_doubled"),
         later="what an attached terminal makes of it: attach"),
    Item(48, "two integrations in one shell leave each other alone: our number is our own", covered=(73,)),
    Item(49, "terminals that print an unknown OSC", reason="nothing is attached to the terminal in this version"),
    Item(50, "fish 4 waits for an answer to DA1: every cycle in 4.0 and 4.9",
         covered=("tests/shellrc/test_versions.py::test_quick_blocks",)),
    Item(51, "fish 4 reports an end of its own as well", covered=(FISH + "test_osc_133_is_not_doubled",)),
    Item(52, "ZDOTDIR is the user's", covered=(ZSH + "test_startup_directory_is_the_users",)),
    Item(53, "aliases called like what the hooks use", quirks.sudo_alias, both(SET),
         (31, BASH + "test_functions_with_our_builtins_names")),
    Item(54, "exec >log: all marks still come", covered=(32, BASH + "test_output_elsewhere")),
    Item(55, "exec 2>log: the end still comes", covered=(32, BASH + "test_errors_elsewhere_leaves_the_end")),
    Item(56, "stty raw left behind", covered=(69,)),
    Item(57, "kill -9, exit, set -e: the end without END is the end of the shell", covered=(21, 22, 27)),
    Item(58, "an EXIT trap runs when the shell ends and not before", quirks.exit_trap_waits,
         both((ok(), HEALTHY, (4, "shell_exited", b"bye\n"))), (28,)),
    Item(59, "Ctrl-L and a new size repeat the mark; that is no new prompt", quirks.redrawn,
         both((0, "idle", HEALTHY)), (BASH + "test_redraw_repeats_the_count", FISH + "test_redraw_repeats_the_count")),
    Item(60, "questions inside a block are no prompt", covered=(47, 48, 60)),
    Item(61, "an alias with a line end in it is one block", quirks.alias_of_lines,
         both((0, b"one\ntwo\n", HEALTHY))),
    Item(62, "a decimal comma in a time", reason="no mark holds a time: the recorder has the clock"),
    Item(63, "a directory with line ends, `;`, ESC, or of 4,000 bytes",
         covered=(16, BASH + "test_directory_of_two_thousand_bytes", ZSH + "test_directory_of_two_thousand_bytes")),
    Item(64, "printf as a function, an alias, or switched off",
         covered=(31, BASH + "test_disabled_printf_leaves_the_prompt")),
    Item(65, "PROMPT_COMMAND= by a script: the statuses stay right", quirks.prompt_command_gone,
         both((0, [ok(b"a\n"), ok(exit_status=3), ok(b"b\n")])), (30,)),
    Item(66, "the history file is our own",
         covered=(BASH + "test_history", ZSH + "test_history", FISH + "test_history_is_nobodys")),
    Item(67, "a leading space", covered=(86,)),
    Item(68, "a cleared screen moves no border", quirks.clear_screen, both(((3, "ended"), HEALTHY)), (69,)),
    Item(69, "half a line left in vi's command mode", quirks.vi_leftover, both(HEALTHY)),
    Item(70, "select and a line editor inside a block are no prompt", quirks.asks,
         both((["timeout", "timeout"], True, 2, HEALTHY))),
)  # fmt: skip
