"""A shell of a conversation, from its command line to its first prompt.

Rules of this file: which conversations there are, and whether one may be opened, is not known here.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
from collections.abc import Mapping
from typing import Any, Final

from blockpty.engine.states import ShellState
from blockpty.errors import NoPrompt, SpawnFailed
from blockpty.host.shells import family_of, plan
from blockpty.model.results import OpenResult
from blockpty.runtime import keeping
from blockpty.runtime.conversation import Conversation
from blockpty.runtime.modes import mode_of
from blockpty.runtime.rcfiles import write_private

# Files, doorbell and lock of one conversation in the engine, and what the rest of the program may need.
DESCRIPTORS_EACH: Final = 10
DESCRIPTORS_ELSE: Final = 200


async def start_shell(
    conversation: Conversation,
    settings: Mapping[str, Any],
    durability: str,
    process_limit: int,
    shell_nice: int,
    keep_bytes: int | None,
) -> int:
    """Have the host start a shell with our hooks in it; return where its output begins; raises SpawnFailed."""
    instance = conversation.live.state.instance + 1
    nonce = secrets.token_urlsafe(16)
    made = plan(
        settings.get("shell"), directory=str(conversation.directory), instance=instance, nonce=nonce,
        login=bool(settings.get("login")), inherited=os.environ, additions=settings.get("env") or None,
    )  # fmt: skip
    if family_of(made.argv[0]) is None:
        raise SpawnFailed(
            f"{made.argv[0]} is not a shell this version knows",
            hint="use bash, zsh or fish; of dash, ash, ksh93 and mksh the prompt is marked",
        )
    write_private(conversation.directory, made)
    entry = {
        "instance": instance, "nonce": nonce, "shell": made.name, "argv": list(made.argv), "cwd": settings["cwd"],
        "cols": settings["cols"], "rows": settings["rows"],
    }  # fmt: skip
    reply = await conversation.host.open(
        conversation.id, directory=str(conversation.directory), argv=made.argv, env=made.env, cwd=settings["cwd"],
        cols=settings["cols"], rows=settings["rows"], persist=bool(settings.get("persist")), entry=entry,
        durability=durability, process_limit=process_limit, shell_nice=shell_nice,
        segment_bytes=keeping.segment_bytes(keep_bytes),
    )  # fmt: skip
    conversation.live.pump()
    return reply.offset


async def first_prompt(conversation: Conversation, begin: int, timeout_ms: int) -> OpenResult:
    """Wait until the shell that begins there is ready; raises SpawnFailed when it ended before that, and NoPrompt."""
    result = await conversation.wait_for({"token": "PROMPT"}, from_cursor=begin, timeout_ms=timeout_ms)
    state = conversation.live.state
    if state.shell is ShellState.EXITED:
        raise SpawnFailed(
            f"the shell of {conversation.id} ended before its first prompt",
            hint="look at what it printed with read",
            details={"exit": state.exit, "printed": result.text[-1000:]},
        )
    if not result.matched:
        raise NoPrompt(
            f"the shell of {conversation.id} showed no prompt within {timeout_ms} ms",
            hint="it may still be reading its rc files; status and wait_for tell",
            details={"printed": result.text[-1000:]},
        )
    conversation.opened = OpenResult(
        conversation_id=conversation.id,
        shell_id=f"{conversation.id}.{state.instance}",
        pid=int(state.pid),
        cursor=result.cursor,
        mode=mode_of(state),
    )
    return conversation.opened


def raise_descriptor_limit(conversations: int) -> None:
    """Have room for the descriptors of so many conversations, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = conversations * DESCRIPTORS_EACH + DESCRIPTORS_ELSE
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
