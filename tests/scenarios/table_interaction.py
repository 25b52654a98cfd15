"""The rows 47 to 63 of the table of scenarios: programs that ask, read, draw and nest."""

from __future__ import annotations

from tests.scenarios import interaction
from tests.scenarios.rows import Scenario, both, ok

_AT_PROMPT = ("idle", "at_prompt")
_ON_SCREEN = (("interactive", "alt_screen"), (0, "ended"), _AT_PROMPT)
_PASSWORD = ("password", "password", ok(b"Password: \n17 characters\n"), True)
_RESIZED = ([(100, 30)], (0, "ended"), ok(b"next\n"))

INTERACTION = (
    Scenario(47, "read with a question", "a wait finds the question, the answer goes in, the block closes with both",
             interaction.question, both((("matched", "interactive"), ok(b"Name: Bob\nhi Bob\n")))),
    Scenario(48, "read -s, getpass", "a password is known by the terminal's modes and is in no file afterwards",
             interaction.secret, both(({"read -s": _PASSWORD, "getpass": _PASSWORD}, []))),
    Scenario(49, "question before echo is off", "who waits for the password state types only when echo is off",
             interaction.secret_asked_early,
             both((("timeout", "running"), "password", ok(b"Password: > 17\n"), []))),
    Scenario(50, "python REPL", "prompts of a REPL are output: one block until it exits", interaction.repl,
             both({"answer": "2", "running": ("interactive", True), "done": (0, "ended", "session", 1), "blocks": 1})),
    Scenario(51, "python, several lines", "a definition goes in line by line, an expression as a paste",
             interaction.repl_lines, both(("42", "pasted 42", (0, "ended"), 1))),
    Scenario(52, "cat, text, Ctrl-D", "echo and copy are both there, and it closes", interaction.copier,
             both(ok(b"hello\nhello\n"))),
    Scenario(53, "nested shell", "two commands in an inner shell are one outer block",
             interaction.nested,
             both({"inside": ("timeout", "interactive", True, "bash"), "done": (4, "ended", True), "blocks": ["b1"],
                   "doubts": []}), needs=("bash",), later="a flag that says nested: nesting"),
    # Functions cannot be exported from zsh, so an inner shell there has the values and prints nothing.
    Scenario(54, "nested shell with our hooks", "marks of an inner shell are refused by its process id",
             interaction.nested_with_hooks,
             {"bash": ((4, "ended"), ["instance"], False, ok(b"next\n"), 2),
              "zsh": ((4, "ended"), [], False, ok(b"next\n"), 2)}, needs=("bash",)),
    Scenario(54, "nested shell that runs our hooks", "it asks for its prompt once, and its marks are refused",
             interaction.nested_with_all_hooks,
             {"bash": ((4, "ended"), ["instance"], False, ok(b"next\n"), 2),
              "zsh": ((4, "ended"), [], False, ok(b"next\n"), 2)}, variant="all", needs=("bash",)),
    Scenario(55, "pager", "a full-screen program is seen as such, and leaves a clean prompt", interaction.pager_policy,
             both((_ON_SCREEN, ok(b"next\n")))),
    Scenario(55, "git log", "plain with PAGER=cat, full screen with a pager", interaction.git_log,
             both((ok(b"the message\n"), _ON_SCREEN, ok(b"next\n"))), variant="git", needs=("git", "less")),
    Scenario(56, "editor", "keys go in, the file is written, the block closes", interaction.editor,
             both((_ON_SCREEN, b"written", ok(b"next\n")))),
    Scenario(56, "vim", "insert, :wq", interaction.vim, both((_ON_SCREEN, b"written\n", ok(b"next\n"))),
             variant="vim", needs=("vim",)),
    Scenario(57, "resize a full-screen program", "the program is notified and it is in the record",
             interaction.resized, both(_RESIZED)),
    Scenario(57, "top", "resize, q", interaction.top, both(_RESIZED), variant="top", needs=("top",)),
    Scenario(58, "cursor position asked", "an answer reaches the program byte for byte, and no later command",
             interaction.cursor_position, both((True, [ok(b"next\n"), ok(b"\x1b[6n"), ok(b"last\n")]))),
    Scenario(59, "program that drains its input", "a queued command is not typed before the prompt, so nothing eats it",
             interaction.drained, both(("timeout", [ok(b"ready\ndrained 0\n"), ok(b"queued\n")]))),
    Scenario(60, "y/n without a line end", "a pattern matches on an unfinished line", interaction.yes_or_no,
             both(("[y/N] ", ok(b"Proceed? [y/N] y\ngot y\n")))),
    Scenario(61, "collecting ...", "an unfinished line is not a question", interaction.collecting,
             both(("timeout", ("block_running", "running"), ok(b"collecting ... done\n")))),
    Scenario(62, "Enter for a full-screen program", "is CR", interaction.enter_key, both(True)),
    Scenario(63, "send when nothing runs", "is refused and never starts a block", interaction.nothing_runs,
             both((dict.fromkeys(("send", "send_keys", "paste", "enter to a session"), "no_session"), "idle",
                   ok(b"next\n"), False, ["true", "echo next"]))),
)  # fmt: skip
