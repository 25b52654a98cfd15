"""A shell of a conversation, from its command line to its first prompt.

Rules of this file: which conversations there are, and whether one may be opened, is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import secrets
import sys
from collections.abc import Mapping
from typing import Any, Final

from blockpty.control.principals import current
from blockpty.engine.outcome import PANE_SOURCES
from blockpty.engine.states import ShellState
from blockpty.errors import NoPrompt, PtyLimit, SpawnFailed
from blockpty.host import descriptors
from blockpty.host.client import Inspected
from blockpty.host.injection import HANDED_OVER
from blockpty.host.shells import NO_PAGERS, family_of, plan
from blockpty.host.sources import SHELL, TYPED, parse_source, plan_source
from blockpty.model.results import OpenResult
from blockpty.runtime import truncation
from blockpty.runtime.arrival import arrive, asks
from blockpty.runtime.conversation import Conversation, RecordSettings
from blockpty.runtime.rcfiles import write_private
from blockpty.runtime.shell_entry import REPAIR_SECONDS, can_repair
from blockpty.runtime.shell_offer import offer_hooks
from blockpty.runtime.ssh_options import kept_alive, resumed
from blockpty.runtime.status import mode_of, source_text
from blockpty.runtime.tmux_panes import bridged, find_pane, follow_size

# Files, notification descriptor and lock of one conversation in the engine, and what the rest of the program may need.
DESCRIPTORS_ELSE: Final = 200
# How long a program that takes no hooks is waited for to start one that does, and how often that is looked at.
FOREIGN_SECONDS: Final = 5.0
CHECK_SECONDS: Final = 0.25
# How often the hooks are typed into a shell that does not take them.
ADOPT_TRIES: Final = 2
# How far back the output of a shell that is not ready is looked at; a quarter of that is in the error.
PRINTED_BYTES: Final = 4000
QUESTION_CHARACTERS: Final = 80


async def start_shell(
    conversation: Conversation,
    settings: Mapping[str, Any],
    record: RecordSettings,
    process_limit: int,
    shell_nice: int,
) -> int:
    """Have the host start a shell with our hooks in it; return where its output begins; raises SpawnFailed."""
    guard, additions, cwd = None, settings.get("env") or {}, settings["cwd"]
    inherited = settings.get("env_from") or os.environ
    if settings.get("pagers") is False:
        additions = {**NO_PAGERS, **additions}
    if settings.get("sandbox"):
        from blockpty.runtime import sandboxing

        guard = await sandboxing.prepare(
            settings["sandbox"], home=conversation.layout.directory.parents[1], directory=conversation.directory,
            cwd=cwd, host_version=conversation.host.version,
        )  # fmt: skip
        additions, cwd = {**guard.env, **additions}, guard.cwd
    conversation.is_sandboxed = guard is not None
    instance = conversation.live.state.instance + 1
    nonce = secrets.token_urlsafe(16)
    source, size = parse_source(settings.get("source") or SHELL), (settings["cols"], settings["rows"])
    pane = None
    if source is None:
        made = plan(
            settings.get("shell"), directory=str(conversation.directory), instance=instance, nonce=nonce,
            login=bool(settings.get("login")), inherited=inherited, additions=additions or None,
        )  # fmt: skip
        if family_of(made.argv[0]) is None:
            raise SpawnFailed(
                f"{made.argv[0]} is not a shell this version knows",
                hint="use bash, zsh or fish; of dash, ash, ksh93 and mksh the prompt is marked",
            )
    else:
        made = plan_source(source, inherited, additions or None)
        if source.kind == "ssh":
            made = await kept_alive(made)
            if settings.get("resume"):
                made = resumed(
                    made, conversation.id, str(conversation.directory), instance, nonce, size,
                    only=settings["resume"] == "always",
                )  # fmt: skip
        elif source.kind == "tmux":
            pane = await find_pane(made, source.target)
            size = pane.cols, pane.rows
            made = bridged(made, pane, directory=str(conversation.directory), instance=instance, nonce=nonce)
    write_private(conversation.directory, made)
    entry = {
        "instance": instance, "nonce": nonce, "shell": made.name, "argv": list(made.argv), "cwd": cwd,
        "cols": size[0], "rows": size[1],
    }  # fmt: skip
    if source is not None:
        entry["hooks"] = False
        entry["source"] = {
            "kind": source.kind, "target": source.target, "command": source.command, "author": current().author(),
        }  # fmt: skip
    if sys.platform != "linux":
        entry["system"] = sys.platform  # other numbers of signals
    env = made.env
    if guard is not None:
        env, entry["sandbox"] = guard.environment(env), guard.facts
    reply = await conversation.host.open(
        conversation.id, directory=str(conversation.directory), argv=made.argv, env=env, cwd=cwd,
        cols=size[0], rows=size[1], persist=bool(settings.get("persist")), entry=entry,
        durability=record.durability, process_limit=process_limit, shell_nice=shell_nice,
        segment_bytes=truncation.segment_bytes(record.keep_bytes),
        sandbox=guard.boundary if guard is not None else None,
        is_piped=made.is_piped,
    )  # fmt: skip
    conversation.live.pump()
    go_on(conversation, reply.offset)
    conversation.offering = None
    if pane is not None:
        conversation.offering = conversation.live.tasks.start(offer_hooks(conversation, pane))
    return reply.offset


def go_on(conversation: Conversation, begin: int = 0) -> None:
    """Have a shell that is elsewhere, and has not shown a prompt yet, get its hooks when it does; follow a pane's size.

    `begin`: where its output begins, as far as that is known.
    """
    state = conversation.live.state
    source = parse_source(source_text(state))
    waits = state.shell is ShellState.STARTING and state.current.integrity_reason is not None
    if source is not None and source.hooks == TYPED and waits:
        conversation.live.tasks.start(arrive(conversation, begin))
    # Also behind ssh a tmux may keep the shell.
    if source is not None and source.kind in PANE_SOURCES and state.shell is not ShellState.EXITED:
        conversation.live.tasks.start(follow_size(conversation))


async def first_prompt(conversation: Conversation, begin: int, timeout_ms: int) -> OpenResult:
    """Wait until the shell that begins there is ready, or one that its startup files put in its place (`exec zsh`).

    Raises SpawnFailed when it ended before that, and NoPrompt: then it runs on.
    """
    if conversation.live.state.source is not None:
        return await _source_ready(conversation, begin, timeout_ms)
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    result = await conversation.wait_for({"token": "PROMPT"}, from_cursor=begin, timeout_ms=timeout_ms)
    cursor = result.cursor if result.matched else await _adopted(conversation, deadline)
    state = conversation.live.state
    if state.shell is ShellState.EXITED:
        raise SpawnFailed(
            f"the shell of {conversation.id} ended before its first prompt",
            hint="details.printed is what it said; look into its startup files",
            details={"exit": state.exit, "printed": await _printed(conversation, begin)},
        )
    if cursor is None:
        raise await _no_prompt(conversation, begin, timeout_ms)
    pid: int | None = int(state.pid)
    if conversation.is_sandboxed:
        # In its marks it says what it is inside.
        pid = (await conversation.host.inspect(conversation.id)).pid or pid
    return _opened(conversation, cursor, pid or 0)


async def _source_ready(conversation: Conversation, begin: int, timeout_ms: int) -> OpenResult:
    """Wait until what is no shell of this machine can be used; raises as `first_prompt` does.

    A program can at once. NoPrompt says what a person has to answer on the way there; the way goes on after it.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    while True:
        conversation.live.pump()
        state = conversation.live.state
        assert state.source is not None  # the caller has asked
        drawn = state.source["kind"] != "tmux" or (state.seam is not None and state.seam["drawn"])
        usable = state.shell in (ShellState.IDLE, ShellState.RUNNING) and drawn
        if usable and conversation.offering is not None:
            # A shell that looks for our hooks has them when it is at its prompt.
            await asyncio.wait({conversation.offering}, timeout=max(0.0, deadline - loop.time()))
            conversation.offering = None
            continue
        if usable or state.source["kind"] == "exec":
            return _opened(conversation, conversation.cursor, int(state.pid))
        if state.shell is ShellState.EXITED:
            raise SpawnFailed(
                f"{state.source['kind']} ended before {source_text(state)} could be used",
                hint="details.printed is what it said",
                details={"exit": state.exit, "printed": await _printed(conversation, begin)},
            )
        left, waits = deadline - loop.time(), asks(state)
        if waits or left <= 0:
            raise await _not_ready(conversation, begin, timeout_ms, waits)
        await conversation.live.subscribers.changed(min(left, CHECK_SECONDS))


async def _not_ready(conversation: Conversation, begin: int, timeout_ms: int, waits: str | None) -> NoPrompt:
    """Return the error for a source that is not ready: what it asks, or that the time is up."""
    text, printed = source_text(conversation.live.state), await _printed(conversation, begin)
    details = {"conversation_id": conversation.id, "printed": printed, "waits_for_answer": waits is not None}
    if waits is None:
        return NoPrompt(
            f"{text} showed no prompt within {timeout_ms} ms",
            hint="the conversation stays: screen shows what is there, wait_for PROMPT keeps waiting, reset starts "
            "again",
            details=details,
        )
    question = printed.strip().rpartition("\n")[2][-QUESTION_CHARACTERS:]
    return NoPrompt(
        f"{text} waits for an answer to {question!r}",
        hint="the conversation stays: have a person answer (attach, or send as user), then wait_for PROMPT",
        details={**details, "tty": "password" if waits == "password" else "reads_line"},
    )


def _opened(conversation: Conversation, cursor: int, pid: int) -> OpenResult:
    state = conversation.live.state
    conversation.opened = OpenResult(
        conversation_id=conversation.id,
        shell_id=f"{conversation.id}.{state.instance}",
        pid=pid,
        cursor=cursor,
        mode=mode_of(state),
    )
    return conversation.opened


async def _adopted(conversation: Conversation, deadline: float) -> int | None:
    """Give our hooks to a shell that replaced ours before its first prompt; return where its prompt ended, or None."""
    loop = asyncio.get_running_loop()
    foreign_by, tries = loop.time() + FOREIGN_SECONDS, ADOPT_TRIES
    while conversation.live.state.hooks_lost and (left := deadline - loop.time()) > 0:
        sample = await conversation.host.inspect(conversation.id)
        conversation.live.pump()
        state = conversation.live.state
        if state.shell is ShellState.EXITED:
            return None
        if can_repair(state, sample):
            with contextlib.suppress(NoPrompt):
                await conversation.enter_shell(timeout_ms=max(1, int(min(left, REPAIR_SECONDS) * 1000)))
                return conversation.cursor
            tries -= 1
            if not tries:
                return None
        if _replacement(sample) not in HANDED_OVER and loop.time() >= foreign_by:
            return None
        await conversation.live.subscribers.changed(min(left, CHECK_SECONDS))
    return None


async def _no_prompt(conversation: Conversation, begin: int, timeout_ms: int) -> NoPrompt:
    """Return the error for a shell that runs and shows no prompt, and have the record say so."""
    sample = await conversation.host.inspect(conversation.id)
    conversation.live.pump()
    state = conversation.live.state
    details: dict[str, Any] = {
        "conversation_id": conversation.id, "printed": await _printed(conversation, begin),
        "waits_for_answer": bool(sample.icanon and sample.reads), "foreground": sample.foreground_name,
    }  # fmt: skip
    if not state.hooks_lost:
        conversation.note({"type": "no_prompt"})
        await conversation.noted()
    if state.hooks_lost or sample.replaced:
        other = _replacement(sample)
        why = "which did not show a prompt with the hooks" if other in HANDED_OVER else "which takes no hooks"
        return NoPrompt(
            f"the shell of {conversation.id} was replaced by {other}, {why}",
            hint="a startup file runs exec; the conversation stays: send, read and screen work with what runs there, "
            "close ends it",
            details=details,
        )
    if details["waits_for_answer"]:
        question = details["printed"].strip().rpartition("\n")[2][-QUESTION_CHARACTERS:]
        return NoPrompt(
            f"the shell of {conversation.id} showed no prompt within {timeout_ms} ms: a startup file waits for an "
            f"answer to {question!r}",
            hint="the conversation stays: send the answer, then wait_for PROMPT; or reset",
            details=details,
        )
    return NoPrompt(
        f"the shell of {conversation.id} showed no prompt within {timeout_ms} ms",
        hint="it may still be reading its startup files; the conversation stays: wait_for PROMPT keeps waiting, "
        "status says what runs, send answers what details.printed asks, reset starts again",
        details=details,
    )


def _replacement(sample: Inspected) -> str:
    """Return the name of the program that the shell's own process runs."""
    # A host of an earlier version tells only what has the terminal.
    return (sample.program or sample.foreground_name or "another program").lstrip("-")


async def _printed(conversation: Conversation, begin: int) -> str:
    """Return the end of what a shell has printed."""
    end = conversation.cursor
    return (await conversation.read(max(begin, end - PRINTED_BYTES), view="text")).data[-PRINTED_BYTES // 4 :]


def no_descriptors() -> PtyLimit:
    """Return the error for what needs descriptors that there are not."""
    return PtyLimit(
        "there are too few descriptors", hint="close conversations, or raise the limit of open files (ulimit -n)"
    )


def raise_descriptor_limit(conversations: int) -> None:
    """Have room for the descriptors of so many conversations, as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = conversations * descriptors.EACH + DESCRIPTORS_ELSE
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
