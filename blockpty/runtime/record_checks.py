"""`verify`, `repair` and `seal` of one conversation: what is asked of the engine before the files are compared.

Rules of this file: `verify` does not attach to a conversation, since that repairs it: the recorder repairs a torn line,
the engine what is derived. So one that is not attached is compared as its files are; only `repair` and `seal` attach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from blockpty.errors import BadCursor, Busy, NotFound, SpoolCorrupt
from blockpty.model.results import RepairResult, SealResult, VerifyResult
from blockpty.runtime.keyed_seals import Key
from blockpty.runtime.record_reader import Position
from blockpty.runtime.verify import Seen, verify
from blockpty.runtime.worker_threads import aside
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout, check_conversation_id, conversations_directory
from blockpty.spool.log_start import load_log_start

if TYPE_CHECKING:
    from blockpty.runtime.channel import ConversationChannel
    from blockpty.runtime.home import Home

_TRIES: Final = 5


async def check(engine: Home, conversation_id: str, key: str | None, *, redact: bool) -> VerifyResult:
    """Compare a conversation's files with its record. Raises BadRequest, Busy, NotFound, SpoolCorrupt, SpoolVersion."""
    name = check_conversation_id(conversation_id)
    layout = Layout(conversations_directory(engine.home) / name)
    _known(layout)

    async def sizes() -> Position | None:
        found = (await engine.sizes()).get(name)
        return Position(*found) if found is not None else None

    conversation = engine.attached(name)
    if conversation is not None:
        await engine.refuse_replaced(conversation)
    return await check_files(name, layout, conversation, key, sizes, redact=redact)


async def check_files(
    name: str,
    layout: Layout,
    conversation: ConversationChannel | None,
    key: str | None,
    sizes: Callable[[], Awaitable[Position | None]] | None = None,
    *,
    redact: bool = True,
) -> VerifyResult:
    """Compare files with a record, which may be attached; `sizes` asks the recorder how far a live one goes.

    A record whose oldest part is dropped meanwhile is compared once more, from where it begins then.
    """
    for _ in range(_TRIES):
        begins = _begins(layout)
        try:
            result = await _check_once(name, layout, conversation, key, sizes, redact=redact)
        except (BadCursor, SpoolCorrupt):
            if _begins(layout) == begins:
                raise
            continue
        if result.clean or _begins(layout) == begins:
            return result
    raise Busy(
        f"the oldest part of {name} is dropped faster than the rest can be compared",
        hint="verify again when its program prints less",
    )


def _begins(layout: Layout) -> int:
    beginning = load_log_start(layout.directory)
    return 0 if beginning is None else beginning.offset


async def _check_once(
    name: str,
    layout: Layout,
    conversation: ConversationChannel | None,
    key: str | None,
    sizes: Callable[[], Awaitable[Position | None]] | None,
    *,
    redact: bool,
) -> VerifyResult:
    known_key, written = Key(key) if key is not None else None, None
    if conversation is not None:
        await conversation.noted()
        written = conversation.live.deriver.sizes()
    least = await sizes() if sizes is not None else None
    waits = False
    if conversation is not None and written is not None:
        # Both at one moment.
        written, waits = conversation.live.deriver.sizes(), conversation.live.deriver.problem is not None
        seen = Seen.of(layout, conversation.live.reader.position, written)
    else:
        seen = await asyncio.to_thread(Seen.of, layout)
    most = await sizes() if sizes is not None else None
    if least is not None and most is not None:
        seen = replace(seen, least=least, most=most)
    result = await aside(lambda pace: verify(name, layout, seen, known_key, redact=redact, pace=pace))
    why = "waits for room" if waits else "not derived yet"
    return replace(result, behind=[{**one, "message": f"{one['message']} ({why})"} for one in result.behind])


def _known(layout: Layout) -> None:
    try:
        checkpoint.load_meta(layout.meta)
    except FileNotFoundError:
        if layout.timeline.exists():
            raise SpoolCorrupt(f"{layout.meta} is missing", hint="restore meta.json; nothing was touched") from None
        name = layout.directory.name
        raise NotFound(f"no conversation is called {name}", hint="list names those that exist") from None


async def repair(engine: Home, conversation_id: str, key: str | None) -> RepairResult:
    """Derive everything again from stream and timeline, and say what that changed. Raises as `check`, and Busy."""
    before = await engine.verify(conversation_id, key=key)
    if conversation_id in await engine.live():
        raise Busy(f"the shell of {conversation_id} runs", hint="close it first; what is derived can be repaired then")
    await (await engine.conversation(conversation_id)).derive_again()
    after = await engine.verify(conversation_id, key=key)
    left = [_place(one) for one in (*after.differences, *after.behind)]
    changed = [_place(one) for one in (*before.differences, *before.behind) if _place(one) not in left]
    return RepairResult(after.clean, changed, after.differences)


def _place(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"where": one["where"], "message": one["message"]}


async def seal(engine: Home, conversation_id: str, key: str) -> SealResult:
    """Have the record as it is now sealed with a key. Raises as `check`, and SpoolCorrupt when it is not clean."""
    checked = Key(key)
    conversation = await engine.conversation(conversation_id)
    await conversation.own()
    # What older versions wrote has no links: the note that is about to be written has one.
    found = await engine.verify(conversation_id)
    if not found.clean:
        raise SpoolCorrupt(
            f"{conversation_id} is not what was recorded", hint="verify says where", details=found.differences[0]
        )
    if found.head is None or found.record is None:
        raise SpoolCorrupt(
            f"{conversation_id} was recorded by a version that vouches for nothing",
            hint="only what is recorded from now on can be sealed",
        )
    at = Position(*found.record)
    conversation.note(checked.seal(conversation.id, at, found.head))
    await conversation.noted()
    return SealResult(at.offset, found.head)
