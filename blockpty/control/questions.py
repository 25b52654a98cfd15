"""Questions that a policy answers: who asks for what, where, and the verdict.

Rules of this file: frozen data.
"""

from __future__ import annotations

import enum
from typing import Literal, TypeAlias

from msgspec import Struct

from blockpty.control.simple_command import SimpleCommand

Action: TypeAlias = Literal["allow", "ask", "deny"]


class Right(enum.Enum):
    """Right that is asked for; each can be allowed separately.

    OPEN: open a conversation. EXEC: run a command at the prompt. INPUT: type into a running program. PASSWORD: type
    where a program asks for a secret. SIGNAL: interrupt or end programs. FILES: import a recording. LIFECYCLE: close,
    reset, resize and the like.
    """

    OPEN = "open"
    EXEC = "exec"
    INPUT = "input"
    PASSWORD = "password"
    SIGNAL = "signal"
    FILES = "files"
    LIFECYCLE = "lifecycle"


class Level(enum.Enum):
    """Level of a conversation: how much of its input a person is asked about, on top of the policy.

    ASK_FIRST: each kind of thing once in a conversation: the first command, the first input to a running program, and
    the first of each rule that asks. ALWAYS_ASK: every command and every input. ALWAYS_ALLOW: nothing. At every level
    a deny stays a deny, and what is typed at a password prompt follows the rules alone.
    """

    ASK_FIRST = "ask_first"
    ALWAYS_ASK = "always_ask"
    ALWAYS_ALLOW = "always_allow"


class Question(Struct, frozen=True):
    """One request that may need a person's consent.

    Attributes:
        right: what is asked for.
        operation: the name of the operation.
        principal: who asks, as the surface has established it.
        types_as: `agent`, `user` or `engine`.
        conversation_id: the conversation, empty where there is none yet.
        text: what would be run or typed; the path for FILES, empty where it says nothing.
        cwd: the working directory in which it would happen.
        tty: the state of its terminal.
        foreground: base name of the program that has the terminal, None at a prompt.
        shell: which shell reads a command: `bash`, `zsh`, `fish` and so on.
        home: home directory of the user of the shell.
        secret: name of the stored secret that would be typed.
        approved: the kinds (`Verdict.kinds`) that a person has approved in this conversation, for `Level.ASK_FIRST`.
        conversation_cwd: the conversation's working directory, where `cwd` is one that the command changes to first.
    """

    right: Right
    operation: str = ""
    principal: str = ""
    types_as: str = "agent"
    conversation_id: str = ""
    text: str = ""
    cwd: str | None = None
    tty: str | None = None
    foreground: str | None = None
    shell: str | None = None
    home: str | None = None
    secret: str | None = None
    approved: frozenset[str] = frozenset()
    conversation_cwd: str | None = None


class Verdict(Struct, frozen=True):
    """The answer to a question.

    Attributes:
        action: what is to be done.
        rule: name of the rule that decided; `default.<right>` or `level.<level>` where no rule did.
        reason: one sentence for a person.
        commands: the simple commands of the text.
        kinds: what an approval is remembered as; for `ask`, every rule that asked.
    """

    action: Action
    rule: str
    reason: str
    commands: tuple[SimpleCommand, ...] = ()
    kinds: tuple[str, ...] = ()
