"""Groups of commands in `blockpty --help`, and a guess at what was meant by a command that does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Shells": {
        "open": "Start a shell and wait for its first prompt.",
        "list": "List the conversations, newest first.",
        "status": "Show what a shell and its terminal are doing now.",
        "resize": "Change the size of a terminal.",
        "enter-shell": "Mark the commands of a shell behind ssh, su, ...",
        "reset": "Kill a shell and start another in its place.",
        "kill": "Kill a shell and the program it runs.",
        "close": "End a shell; its transcript is kept.",
    },
    "Run": {
        "run": "Run a command; print its output, return its status.",
        "exec-block": "Start a command without waiting for its end.",
        "exec-interactive": "Start a program to talk to.",
        "interrupt": "Interrupt the running program.",
        "end-session": "End an interactive program gently.",
    },
    "Talk": {
        "send": "Write text to the terminal, exactly as given.",
        "send-line": "Type a text and press Enter.",
        "send-keys": "Press keys, such as [UP] or ^C.",
        "paste": "Paste text.",
        "enter": "Press Enter.",
        "ctrl-c": "Press Ctrl-C.",
        "ctrl-d": "Press Ctrl-D.",
        "wait-for": "Wait for text, a prompt, silence or the end.",
        "put-file": "Write a file where the shell is.",
        "get-file": "Read a file where the shell is.",
        "attach": "Show the live screen, and type into it.",
    },
    "Look": {
        "view": "Browse conversations, blocks and screens.",
        "watch": "Show a live screen, read-only.",
        "screen": "Print what a terminal shows.",
        "read": "Print part of the transcript.",
        "tail": "Follow what commands print.",
        "log": "Show blocks with their output, newest first.",
        "blocks": "List the blocks of a conversation.",
        "block": "Show the record of one block.",
        "diff": "Compare the outputs of two runs.",
        "timeline": "Show a recording over its whole time.",
        "events": "Print the events, and follow them.",
        "search": "Search commands and output.",
        "overview": "Show what was done in this home.",
        "set-scrollback": "Set how many lines above the screen are kept.",
    },
    "Control": {
        "take-control": "Keep agents from typing while a person does.",
        "release-control": "Hand control back to agents.",
        "halt": "Stop all agents, here or everywhere.",
        "release": "Let agents type again after halt.",
        "request-user-input": "Ask a person to type, and wait for that.",
        "approvals": "List pending approvals.",
        "approve": "Approve a request.",
        "deny": "Deny a request.",
        "answer": "Answer requests for approval as they come.",
        "policy": "Make, check and try the policy for agents.",
        "audit": "Show who did what.",
    },
    "Record": {
        "record": "Record this terminal, as script does.",
        "replay": "Play a recorded conversation.",
        "verify": "Check a record; nothing is written.",
        "repair": "Derive the files of a record again.",
        "seal": "Seal a record with a key.",
        "export": "Export a recording, text, HTML and more.",
        "import": "Make a conversation from a recording.",
        "start-capture": "Begin to capture an asciicast.",
        "stop-capture": "End the capture and write it.",
        "archive": "Move ended streams to an object store.",
        "prune": "Delete old conversations.",
        "delete": "Delete one conversation.",
    },
    "Server": {
        "serve": "Run the server of this home.",
        "mcp": "Offer tools to an agent over stdio.",
        "token": "Make, list and remove tokens.",
        "peers": "Add, list and remove servers elsewhere.",
        "proxy": "Serve a blockpty elsewhere, through ssh.",
        "doctor": "Check what is needed of this machine.",
        "completion": "Print the completion script of a shell.",
        "shell-init": "Print what a shell's startup file needs.",
        "man": "Print the manual page.",
    },
}
"""Sections, with each command in a few words: the first sentences of the operations are too long for a list."""

_OTHERS: Final = "More"
_MEANT: Final = 3
_ROOM: Final = 56


class GroupedCommands(click.Group):
    """A group of commands whose help has a section for each kind, with one line for each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        names = self.list_commands(ctx)
        known = {name for group in GROUPS.values() for name in group} | {"import-recording"}
        others = {name: "" for name in names if name not in known}
        for title, group in {**GROUPS, _OTHERS: others}.items():
            found = {name: self.get_command(ctx, name) for name in group if name in names}
            rows = [
                (name, group[name] or command.get_short_help_str(_ROOM))
                for name, command in found.items()
                if command is not None and not command.hidden
            ]
            if rows:
                with formatter.section(title):
                    # The columns begin at one place in all sections.
                    formatter.write_dl([(f"{name:<{max(map(len, known))}}", text) for name, text in rows])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments begin with; raises UsageError, with what may have been meant."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            import difflib

            meant = name.replace("_", "-")
            close = difflib.get_close_matches(meant, self.list_commands(ctx), _MEANT, 0.6)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)
