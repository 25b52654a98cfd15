"""Scenarios 64 to 79: what programs print, however much, however odd, and however much it looks like a mark."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable
from typing import Any

from blockpty.engine.machine import Machine
from blockpty.model.entries import Entry
from blockpty.model.events import Event
from tests.scenarios import tortures
from tests.scenarios.jobs import memory
from tests.scenarios.stage import PROMPT, SHORT_MS, Stage
from tests.support.profile import LONG

# 600 MB take some 5 s, and much longer where other tests want the same cores and disk.
LONG_TIMEOUT_MS = 90_000
MARK = re.compile(rb"\x1b\]7717;[^\x07]*\x07")


async def many_lines(stage: Stage) -> Any:
    result = await stage.run("seq 1 300000", max_bytes=10_000)
    whole = "".join(f"{number}\n" for number in range(1, 300_001)).encode()
    outcome = stage.outcome(result.block)
    return {
        "spool": (outcome.exit_status, len(outcome.output), outcome.output == whole),
        "preview": (result.truncated, len(result.output) < 10_200, result.output_bytes == len(whole)),
        "ends": (result.output.startswith("1\n2\n3\n"), result.output.endswith("299999\n300000\n")),
        "says the size": str(len(whole)) in result.output,
    }


async def _long_line(stage: Stage, size: int) -> Any:
    before = memory(stage)
    command = f"head -c {size} /dev/zero | tr '\\0' x; echo"
    result = await stage.conversation.run(command, max_bytes=10_000, timeout_ms=LONG_TIMEOUT_MS)
    assert result.reason == "prompt", result.reason
    block = result.block
    output = stage.conversation.directory / (block.out_path or "")
    pieces = set()
    with output.open("rb") as file:
        while piece := file.read(1 << 20):
            # Its first byte and those that are not like it: a set of 600 million bytes takes ten seconds.
            pieces |= {bytes([code]) for code in piece[:1] + piece.translate(None, piece[:1])}
    grown = [after - begin for begin, after in zip(before, memory(stage), strict=True)]
    return {
        "block": (block.exit_status, block.state, block.out_bytes == size + 1, pieces == {b"x", b"\n"}),
        "preview": (result.truncated, len(result.output) < 10_200),
        "memory": grown if max(grown) >= 64 * 1024 else "constant",
        "next": await stage.done("echo next"),
    }


async def long_line(stage: Stage) -> Any:
    # Which shell started the program makes no difference to its bytes: in one of them the line is very long every time.
    very_long = 600_000_000 if LONG else 30_000_000 if stage.shell == "bash" else 10_000_000
    return await _long_line(stage, 5_000_000), await _long_line(stage, very_long)


async def random_bytes(stage: Stage) -> Any:
    data = os.urandom(1_000_000 if LONG else 100_000)
    (stage.folder / "random").write_bytes(data)
    result = await stage.run("cat random")
    begin, end = result.block.span
    raw = await stage.raw(begin, end)
    printed = data.replace(b"\n", b"\r\n")
    text = await _read_whole(stage, result.block.block_id, 65536)
    return {
        "exact": (
            result.block.exit_status,
            stage.outcome(result.block).output == data,
            stage.stream()[begin:end] == printed,
            # One in 150 such files has what looks like a password to a reader who has no reason to doubt it.
            _is_redacted(raw, printed, most=100),
        ),
        "text": ("\ufffd" in text, "\x1b" not in text and "\0" not in text),
        "next": await stage.done("echo next"),
        "blocks": len(await stage.blocks()),
        "doubts": await stage.doubts(),
    }


def _is_redacted(shown: bytes, sent: bytes, *, most: int) -> bool:
    """Whether bytes are those that were sent, but for at most so many that are covered by an asterisk."""
    covered = [one for one, other in zip(shown, sent, strict=False) if one != other]
    return len(shown) == len(sent) and set(covered) <= {ord("*")} and len(covered) <= most


async def _read_whole(stage: Stage, block_id: str, step: int) -> str:
    pieces = []
    cursor: int | None = None
    while True:
        piece = await stage.conversation.read(cursor, block_id=block_id, max_bytes=step)
        pieces.append(piece.data)
        if piece.eof:
            return "".join(pieces)
        assert cursor is None or piece.cursor > cursor, piece
        cursor = piece.cursor


async def encodings(stage: Stage) -> Any:
    text = "emoji 🙂👩‍👩‍👧, 漢字かな, combining e\u0301, עברית\n"
    data = text.encode() + b"invalid \xff\xc3( \xed\xa0\x80\n"
    (stage.folder / "text").write_bytes(data)
    result = await stage.run("cat text")
    gate = stage.gate()
    begun = await stage.conversation.exec_block(rf"printf '<\360\237'; {gate.child}; printf '\231\202>'")
    silent = await stage.wait({"idle_ms": 30}, begun.cursor)
    half = await stage.conversation.read(block_id=begun.block_id)
    gate.release()
    found = await stage.wait("🙂", begun.cursor)
    await stage.wait(PROMPT, begun.cursor)
    return {
        "exact": stage.outcome(result.block) == (0, "ended", data),
        "decoded": result.output == data.decode(errors="replace"),
        "in pieces": {
            step: await _read_whole(stage, result.block.block_id, step) == result.output for step in (7, 64, 65536)
        },
        "split": (silent.reason, half.data.startswith("<"), "🙂" in half.data, found.match_text),
        "joined": stage.outcome(await stage.block(begun.block_id)),
    }


async def nul_and_unfinished_osc(stage: Stage) -> Any:
    return [
        await stage.done(command)
        for command in (
            r"printf 'a\0b\0'",
            r"printf '\033]'",
            r"printf '\033]0;title'",
            r"printf '\033]7717;__END__;'; sh -c 'exit 3'",
            "echo ok",
        )
    ]


async def left_modes(stage: Stage) -> Any:
    disturb = (
        *(
            r"printf '\033Pq unfinished'",
            r"printf '\033_unfinished'",
            r"printf '\033[?1049h'",
            r"printf '\033[?1049h\033[?25l\033(0'",
        ),
        *("stty raw", "stty -echo", "stty raw -echo", "stty -opost", r"printf '\033['", r"printf '\016'"),
    )
    wrong = []
    for command in disturb:
        first = await stage.done(command)
        after = [await stage.done("echo ok"), await stage.done("sh -c 'exit 3'")]
        if first[:2] != (0, "ended") or after != [(0, "ended", b"ok\n"), (3, "ended", b"")]:
            wrong.append((command, first, after))
    status = await stage.conversation.status()
    degraded = [block.degraded for block in await stage.blocks() if block.degraded]
    return {"wrong": wrong, "integrity": status.integrity, "degraded": degraded, "doubts": await stage.doubts()}


async def progress_bar(stage: Stage) -> Any:
    block = (await stage.run(r"printf '\rA\rB\r100%%\n'")).block
    begin, end = block.span
    rendered = await stage.conversation.read(block_id=block.block_id, view="rendered")
    return await stage.raw(begin, end), stage.outcome(block).output, rendered.data


async def coloured_word(stage: Stage) -> Any:
    block = (await stage.run(r"printf 'a re\033[31md\033[0m word\n'")).block
    begin = block.span[0]
    text = await stage.wait("red", begin)
    pattern = await stage.wait({"regex": r"\bred\b"}, begin)
    raw = await stage.conversation.wait_for("red", from_cursor=begin, timeout_ms=SHORT_MS, view="raw")
    assert text.span is not None
    return {
        "text": (text.match_text, await stage.raw(*text.span)),
        "regex": (pattern.match_text, pattern.span == text.span),
        "raw": (raw.matched, raw.reason),
    }


async def looks_like_a_prompt(stage: Stage) -> Any:
    gate = stage.gate()
    show = (
        r"printf 'user@host:~$ '; printf '\n%s' \"$PS1\""
        if stage.shell == "bash"
        else "printf 'user@host:~$ '; fish_prompt"
        if stage.shell == "fish"
        else "print -rn -- 'user@host:~$ '; print -Pn -- $PS1"
    )
    begun = await stage.conversation.exec_block(f"{show}; {gate.child}; sh -c 'exit 3'".replace('\\"', '"'))
    await stage.wait("user@host:~$ ", begun.cursor)
    silent = await stage.wait({"idle_ms": 30}, begun.cursor)
    reason = await stage.absent(PROMPT, begun.cursor)
    status = await stage.conversation.status()
    gate.release()
    await stage.wait(PROMPT, begun.cursor)
    block = await stage.block(begun.block_id)
    return silent.reason, reason, status.mode, (block.exit_status, block.state), len(await stage.blocks())


CLASSIC = (
    b'###PS1JSON###\n{\n"pid": "1", "exit_code": "0"\n}\n###PS1END###\n',
    b"__FWS_PROMPT__ ts=1700000000000 cwd_b64=L3RtcA==\n__FWS_BLOCK_END__ exit=0\n",
    b"__BEGIN__\n__END__;0\n__PROMPT__\n__HELLO__\n",
    b"\x1b]133;D;0\x07\x1b]133;A\x07$ \x1b]133;B\x07\x1b]133;C\x07",
    b"\x1b]633;D;0\x07\x1b]633;A\x07\x1b]633;P;Cwd=/\x07\x1b]1337;RemoteHost=a@b\x07\x1b]7;file:///\x07\x1b]3008;end\x07",
    b"\x1b]7717;__END__\x07\x1b]7717;__PROMPT__;n=;i=;s=;c=;p=\x07\x1b]7717;\x07\x1b]7717;__END__;n=a;i=b;s=x;c=y\x1b\\",
)


async def classic_markers(stage: Stage) -> Any:
    text = b"".join(CLASSIC)
    (stage.folder / "markers").write_bytes(text)
    gate = stage.gate()
    begun = await stage.conversation.exec_block(f"cat markers; {gate.child}; sh -c 'exit 3'")
    await stage.wait("RemoteHost=a@b", begun.cursor, view="raw")
    await stage.wait({"idle_ms": 30}, begun.cursor)
    reason = await stage.absent(PROMPT, begun.cursor)
    status = await stage.conversation.status()
    gate.release()
    await stage.wait(PROMPT, begun.cursor)
    done = stage.outcome(await stage.block(begun.block_id))
    accepted = [event.type for event in await stage.events("agent_block_end", "prompt")]
    return reason, status.mode, status.cwd == str(stage.folder), done == (3, "ended", text), accepted


async def forged_marks(stage: Stage) -> Any:
    """Marks that are wrong in one thing each, in the middle of a command."""
    await stage.run("true")
    conversation = stage.conversation
    gate = stage.gate()
    begun = await conversation.exec_block(f"{gate.child}; cat marks; {gate.child}; sh -c 'exit 3'")
    await stage.wait({"idle_ms": 30}, begun.cursor)
    old = [
        mark
        for mark in MARK.findall(stage.stream())
        if b";__END__;" in mark or b";__PROMPT__;" in mark or b";__BEGIN__;" in mark
    ]
    fields = dict(part.split(b"=", 1) for part in old[-1][:-1].split(b";") if b"=" in part)
    pid, seq, count, prompt = (int(fields[name]) for name in (b"i", b"s", b"c", b"p"))

    def mark(kind: str, nonce: str, instance: int | None, seq: int, more: str) -> bytes:
        return f"\x1b]7717;{kind};n={nonce};i={instance};s={seq};c={count};p={prompt};{more}\x07".encode()

    forged = {
        "nonce": [mark("__END__", "A" * 22, pid, seq + 1, "x=0"), mark("__PROMPT__", "A" * 22, pid, seq, "x=0")],
        "instance": [mark("__END__", stage.nonce, 1, seq + 1, "x=0"), mark("__PROMPT__", stage.nonce, 1, seq, "x=0")],
        "sequence": [
            *old,
            mark("__END__", stage.nonce, pid, seq + 2, "x=0"),
            mark("__END__", stage.nonce, pid, seq, "x=0"),
        ],
    }
    text = b"".join(one for marks in forged.values() for one in marks) + b"shown\n"
    (stage.folder / "marks").write_bytes(text)
    gate.release()
    await stage.wait("shown", begun.cursor)
    await stage.wait({"idle_ms": 30}, (await conversation.status()).cursor)
    reason = await stage.absent(PROMPT, begun.cursor)
    status = await conversation.status()
    spoofed = [event.fields["reason"] for event in await stage.events("spoofed_mark")]
    gate.release()
    await stage.wait(PROMPT, begun.cursor)
    done = stage.outcome(await stage.block(begun.block_id))
    redacted = text.replace(stage.nonce.encode(), b"*" * len(stage.nonce))
    return {
        "still open": (reason, status.mode, status.active_block_id == begun.block_id),
        "reported": spoofed == [name for name, marks in forged.items() for _ in marks],
        "done": (done.exit_status, done.state, done.output == redacted),
        "next": await stage.done("echo next"),
        "blocks": len(await stage.blocks()),
    }


async def own_transcript(stage: Stage) -> Any:
    for command in ("true", "false", "echo one"):
        await stage.run(command)
    stream = min((stage.conversation.directory / "stream").iterdir())
    size = stream.stat().st_size
    marks = len(MARK.findall(stage.stream()))
    # Not a plain cat: it would follow its own output for ever.
    done = await stage.done(f"head -c {size} '{stream}'; sh -c 'exit 3'")
    reasons = {event.fields["reason"] for event in await stage.events("spoofed_mark")}
    return {
        "done": (done.exit_status, done.state),
        "refused": len(await stage.events("spoofed_mark")) >= marks,
        "reasons": reasons <= {"sequence"},
        "next": await stage.done("echo next"),
        "blocks": [block.seq for block in await stage.blocks()],
    }


async def shown_hooks(stage: Stage) -> Any:
    """The shell's variables hold the nonce; its environment, its children and all that is derived do not."""
    commands = {
        "bash": (
            "env",
            "export -p",
            "cat /proc/$$/environ",
            "bash -c set",
            "history",
            "declare -f",
            "set",
            "declare -p",
            "alias",
        ),
        "zsh": (
            "env",
            "export",
            "cat /proc/$$/environ",
            "zsh -fc set",
            "fc -l 1; true",
            "typeset -f",
            "set",
            "typeset",
            "alias",
        ),
        "fish": (
            "env",
            "set -gx",
            "cat /proc/$fish_pid/environ",
            "fish --no-config -c set",
            "history; true",
            "functions (functions --all --names)",
            "set",
            "set --show",
            "abbr",
        ),
    }[stage.shell]
    nonce = stage.nonce.encode()
    derived = []
    revealed = []
    for command in commands:
        result = await stage.run(command, max_bytes=1 << 20)
        done = stage.outcome(result.block)
        read = await stage.conversation.read(block_id=result.block.block_id, view="raw", max_bytes=1 << 20)
        if nonce in done.output or nonce.decode() in result.output + read.data:
            derived.append(command)
        begin, end = result.block.span
        # Both forms of a mark: with the nonce it is worth something, without it nothing.
        if nonce in stage.stream()[begin:end]:
            revealed.append(command)
    after = await stage.done("sh -c 'exit 3'")
    return {
        "derived": derived,
        "environment": [command for command in revealed if command in commands[:5]],
        "next": after,
        "blocks": len(await stage.blocks()) == len(commands) + 1,
    }


def _fold(stream: bytes, entries: Iterable[Entry], cuts: Iterable[int]) -> tuple[list[Event], bytes]:
    """Feed a record to a machine that gets its bytes cut at some offsets."""
    machine, events, at = Machine(), [], 0
    borders = sorted(cuts)
    for entry in (*entries, Entry(len(stream), 0, "end")):
        stops = [border for border in borders if at < border < entry.offset]
        for stop in (*stops, entry.offset):
            if stop > at:
                events += machine.feed(stream[at:stop])[0]
                at = stop
        events += machine.apply(entry)[0]
    return events, repr(machine.snapshot()).encode()


async def cut_marks(stage: Stage) -> Any:
    for command in ("echo one", "false", "cd /", r"printf '\033]7717;__END__;n=x'"):
        await stage.run(command)
    status = await stage.conversation.status()
    stream = stage.stream()[: status.cursor]
    entries = [Entry.from_dict(line) for line in stage.timeline() if line["offset"] <= status.cursor]
    whole = _fold(stream, entries, ())
    marks = [range(mark.start(), mark.end() + 1) for mark in MARK.finditer(stream)]
    longest = max(len(mark) for mark in marks)
    wrong = [
        f"byte {place} of each mark"
        for place in range(longest)
        if _fold(stream, entries, (mark[place] for mark in marks if place < len(mark))) != whole
    ]
    if _fold(stream, entries, range(len(stream))) != whole:
        wrong.append("every byte")
    return wrong, len(marks) >= 16, len(whole[0]) > 16


async def silent_beginning(stage: Stage) -> Any:
    gate = stage.gate()
    begun = await stage.conversation.exec_block(f"{gate.child}; echo out")
    silent = await stage.wait({"idle_ms": 20}, begun.cursor)
    for pid in stage.host_pids():
        # A stop and a continue make epoll_wait return EINTR, with no handler at all.
        os.kill(pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGCONT)
    between = [event.type for event in await stage.events("eof", "shell_exit")]
    mode = (await stage.conversation.status()).mode
    gate.release()
    await stage.wait(PROMPT, begun.cursor)
    return silent.reason, between, mode, stage.outcome(await stage.block(begun.block_id))


async def last_words(stage: Stage) -> Any:
    return await tortures.last_words(stage, 20)
