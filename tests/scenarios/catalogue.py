"""The catalogue of edge cases of shell integration: what each one is, and what shows that it is right.

Rules of this file: every item is either played (then `expected` decides, as in the table of scenarios), or covered by
rows and tests that are named, or cannot happen here, with the reason. The numbers up to 70 are those of the study of
shell integration from which the list was made.
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
SHELLS = "tests/shellrc/test_shells.py::"
FISH = "tests/shellrc/test_fish.py::"
HANDOVER = "tests/runtime/test_shell_entry.py::"
FRAMEWORK = "tests/scenarios/test_rc.py::test_framework"
TYPED = "tests/runtime/test_submission.py::"
HIDDEN = "tests/runtime/test_hidden_input.py::"
ENDING = "tests/runtime/test_interruption.py::"
STARTING = "tests/runtime/test_shell_start.py::"


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
         covered=(16, SHELLS + "test_directories", FISH + "test_directory")),
    Item(41, "the prompt's text in the output is not a prompt", covered=(72, 76)),
    Item(42, "codes of bracketed paste are in no output", quirks.no_paste_codes, both([b"a\n", b"b\n"])),
    Item(43, "a command sent before the shell is ready waits", covered=(82, 89)),
    Item(44, "no command is cut at 4,095 bytes", covered=(80, 81)),
    Item(45, "a mark in two reads is a mark", covered=(77, 101)),
    Item(46, "no output is lost at the begin or the end", covered=(78, 79)),
    Item(47, "133;A in a prompt that is drawn again",
         covered=(SHELLS + "test_foreign_terminals_get_their_zones", FISH + "test_osc_133_is_not_doubled"),
         later="what an attached terminal makes of it: attach"),
    Item(48, "two integrations in one shell leave each other alone: our number is our own", covered=(73,)),
    Item(49, "terminals that print an unknown OSC", reason="nothing is attached to the terminal in this version"),
    Item(50, "fish 4 waits for an answer to DA1: every cycle in 4.0 and 4.9",
         covered=("tests/shellrc/test_versions.py::test_quick_blocks",)),
    Item(51, "fish 4 reports an end of its own as well", covered=(FISH + "test_osc_133_is_not_doubled",)),
    Item(52, "ZDOTDIR is the user's", covered=(ZSH + "test_startup_directory_is_the_users",)),
    Item(53, "aliases called like what the hooks use", quirks.sudo_alias, both(SET),
         (31, BASH + "test_functions_with_our_builtins_names")),
    Item(54, "exec >log: all marks still come", covered=(32, SHELLS + "test_output_elsewhere")),
    Item(55, "exec 2>log: the end still comes", covered=(32, BASH + "test_errors_elsewhere_leaves_the_end")),
    Item(56, "stty raw left behind", covered=(69,)),
    Item(57, "kill -9, exit, set -e: the end without END is the end of the shell", covered=(21, 22, 27)),
    Item(58, "an EXIT trap runs when the shell ends and not before", quirks.exit_trap_waits,
         {"bash": (ok(), HEALTHY, (4, "shell_exited", b"exit\nbye\n")),
          "zsh": (ok(), HEALTHY, (4, "shell_exited", b"bye\n"))}, (28,)),
    Item(59, "Ctrl-L and a new size repeat the mark; that is no new prompt", quirks.redrawn,
         both((0, "idle", HEALTHY)), (BASH + "test_redraw_repeats_the_count", FISH + "test_redraw_repeats_the_count")),
    Item(60, "questions inside a block are no prompt", covered=(47, 48, 60)),
    Item(61, "an alias with a line end in it is one block", quirks.alias_of_lines,
         both((0, b"one\ntwo\n", HEALTHY))),
    Item(62, "a decimal comma in a time", reason="no mark holds a time: the recorder has the clock"),
    Item(63, "a directory with line ends, `;`, ESC, or of 4,000 bytes",
         covered=(16, SHELLS + "test_directory_of_two_thousand_bytes")),
    Item(64, "printf as a function, an alias, or switched off",
         covered=(31, BASH + "test_disabled_printf_leaves_the_prompt")),
    Item(65, "PROMPT_COMMAND= by a script: the statuses stay right", quirks.prompt_command_gone,
         both((0, [ok(b"a\n"), ok(exit_status=3), ok(b"b\n")])), (30,)),
    Item(66, "the history file is our own",
         covered=(BASH + "test_history", ZSH + "test_history", FISH + "test_history_is_not_saved")),
    Item(67, "a leading space", covered=(86,)),
    Item(68, "a cleared screen moves no border", quirks.clear_screen, both(((3, "ended"), HEALTHY)), (69,)),
    Item(69, "half a line left in vi's command mode", quirks.vi_leftover, both(HEALTHY)),
    Item(70, "select and a line editor inside a block are no prompt", quirks.asks,
         both((["timeout", "timeout"], True, 2, HEALTHY))),
    # From here on: what a later study found with the startup files of real people.
    Item(71, "no framework has a name of ours, and the hooks leave no other name behind",
         covered=("tests/shellrc/test_names.py::test_no_framework_has_a_name_of_ours",
                  "tests/shellrc/test_names.py::test_every_name_has_our_prefix", FRAMEWORK)),
    Item(72, "a framework wraps our zle-line-init, and ours wraps its: no recursion, one mark for each prompt",
         covered=(ZSH + "test_wrapped_widget", FRAMEWORK)),
    Item(73, "what the user's PS0 prints is in no block",
         covered=(BASH + "test_what_the_users_ps0_prints_is_no_output",
                  BASH + "test_a_ps0_that_cannot_be_expanded_is_recognised_by_the_numbers")),
    Item(74, "a prompt of several lines drawn again by itself makes no block",
         covered=("tests/engine/test_background.py::test_a_prompt_drawn_again_is_no_output", FRAMEWORK)),
    Item(75, "PROMPT_COMMAND assigned by a command: what is appended is in no block",
         covered=(BASH + "test_command_that_changes_prompt_command",),
         later="bash: what is put in front of our element is in the block of that command, PROMPT_COMMAND=(...) "
               "also in the next"),
    Item(76, "a command takes all hooks away: noticed, repaired by the next command; `read -e` is not mistaken for it",
         covered=(HANDOVER + "test_a_shell_that_has_lost_its_hooks_gets_them_again",
                  HANDOVER + "test_a_builtin_that_reads_keys_is_no_lost_shell")),
    # And with what a submitted command is to the shell, what was left unread, and how things end.
    Item(77, "40 commands: history, hooks and the screen show the command",
         covered=(TYPED + "test_hooks_history_and_screen_show_the_command",)),
    Item(78, "the last argument, the statuses of a pipeline and an ERR trap are those of typed commands",
         covered=(TYPED + "test_last_argument_pipeline_and_traps", 18, 19)),
    Item(79, "a wrong text: the words of the shell, and no path in them",
         covered=(TYPED + "test_a_wrong_text_is_rejected_in_the_words_of_the_shell",)),
    Item(80, "a keymap that has lost our key", covered=(TYPED + "test_a_keymap_without_the_key_falls_back",)),
    Item(81, "texts of 5,000 to 1,000,000 characters, and a directory for one command",
         covered=(TYPED + "test_long_texts_and_directories",)),
    Item(82, "a secret that is never read is not run, drawn or recorded",
         covered=(HIDDEN + "test_a_secret_that_no_program_reads",)),
    Item(83, "input in raw mode that is never read",
         covered=(HIDDEN + "test_input_in_raw_mode_that_no_program_reads",)),
    Item(84, "a pager, an editor, a program deaf to Ctrl-C: the session ends, the shell stays",
         covered=(ENDING + "test_a_session_is_ended_and_the_shell_stays",)),
    Item(85, "kill ends the conversation, or says that the shell still runs",
         covered=(ENDING + "test_kill_ends_the_conversation", ENDING + "test_a_kill_that_the_shell_survives_says_so")),
    Item(86, "signals have names, and a stopped job is not over",
         covered=(ENDING + "test_signals_have_names_and_a_stopped_job_is_not_over",)),
    Item(87, "what the line editor draws after a signal is no block",
         covered=(ENDING + "test_what_a_shell_draws_after_a_signal_is_no_block",)),
    Item(88, "close names what has left the session", covered=(ENDING + "test_close_names_what_has_left_the_session",)),
    Item(89, "a startup file replaces the shell by another one",
         covered=(STARTING + "test_a_startup_file_that_becomes_another_shell",
                  STARTING + "test_what_replaced_the_shell_is_named")),
    Item(90, "a startup file asks", covered=(STARTING + "test_a_question_at_startup_can_be_answered",)),
    Item(91, "an open that fails leaves nothing", covered=(STARTING + "test_what_could_not_be_opened_leaves_nothing",)),
)  # fmt: skip
