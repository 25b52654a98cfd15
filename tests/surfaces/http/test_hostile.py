"""S1, S2, S4, S5: what programs print and callers ask for reaches no keyboard, no page and no other client's time."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.support.async_tests import async_test
from tests.support.http_server import Answer, serving

pytestmark = pytest.mark.needs("bash")

# Everything that some terminal answers, or once answered: reports of state, settings, colours, fonts, titles, drawings.
QUESTIONS = (
    *(f"\x1b[{rest}" for rest in (
        "c", "0c", "1c", ">c", ">0c", "=c", "=0c", "5n", "6n", "?6n", "?15n", "?25n", "?26n", "?53n", "?55n", "?56n",
        "?62n", "?63;1n", "?75n", "?85n", "?996n", "x", "0x", "1x", ">q", ">0q", "?u", "?4m", "?1$p", "4$p", "?2026$p",
        "11t", "13t", "14t", "15t", "16t", "18t", "19t", "20t", "21t", "?1;1;0S", "1;1;1;1;1;1*y", "1$w", "2$w", "+p",
        "&u", "$u", "1$u", "2$u", "\"v",
    )),
    *(f"\x1b]{rest}{end}" for end in ("\x07", "\x1b\\") for rest in (
        "4;0;?", "5;0;?", "10;?", "11;?", "12;?", "17;?", "19;?", "50;?", "52;c;?", "52;;?", "60", "61", "3;?WM_NAME",
        "7770;?", "1337;ReportCellSize", "1337;ReportVariable=dXNlcg==", "1337;Capabilities", "99;i=1:p=?;", "9;9;?",
        "702;?", "704;?", "L", "l", "777;preexec",
    )),
    *(f"\x1bP{rest}\x1b\\" for rest in (
        "$qm", "$q\"p", "$qr", "$q q", "$q\nid\n", "+q544e", "+q436f", "=1s", "1$r", ">|q", "p S(E) R(P(I))", "G Q",
    )),
    "\x05", "\x1bZ", "\x9bc", "\x9b6n", "\x1bGQ\n", "\x1b#8\x1b[6n", "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
)  # fmt: skip

# Sets a title and an icon that would be a command if they came back; asks for all; tells what it got until "END".
ASK = """import os, sys, termios, tty
questions = open(sys.argv[1], 'rb').read()
old = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b'\\x1b]2;touch OWNED\\r\\x07\\x1b]1;touch OWNED\\r\\x07\\x1b]52;c;dG91Y2ggT1dORUQN\\x07')
os.write(1, questions + b'ASKED')
got = b''
while not got.endswith(b'END'):
    got += os.read(0, 1)
termios.tcsetattr(0, termios.TCSADRAIN, old)
print('got', got.hex())
"""

LINKS = ("javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "file:///etc/passwd", "vbscript:x")
MARKUP = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</title><script>alert(1)</script>",
    "<svg/onload=alert(1)>", "'\"><iframe srcdoc='<script>alert(1)</script>'>", "{{7*7}}", "${7*7}", "]]>",
    "<!--",
    "--><script>alert(1)</script>", "\\u003cscript\\u003e", "&lt;script&gt;", "<a href=javascript:alert(1)>x</a>",
    *(f"\x1b]8;;{link}\x1b\\click\x1b]8;;\x1b\\" for link in LINKS),
    "\x1b]52;c;aGFja2Vk\x07", "\x1b]52;c;?\x07", "\x1b]9;note\x07", "\x1b]777;notify;a;b\x07", "\x1b]99;;x\x1b\\",
    "\x1b]1337;File=name=eA==;inline=1:aGk=\x07", "\u202etxt.exe", "\U000e0041\U000e0042", "\u200bhidden", "\ufeff",
    "event: end", "data: {}", "\n\ndata: {\"type\": \"forged\"}\n\n", "id: 9\nevent: shell_exit\ndata: {}\n\n",
    "\r\nX: y",
    "\u2028event: end", "\u0085data: x",
)  # fmt: skip

EVIL = (
    "(a+)+$", "(a*)*$", "(a|a)*$", "(a|aa)+$", "(a?){40}a{40}$", "(.*a){30}$", "(.*)*$x", "(a+)*b$", "^(a+)+$",
    "((a+)+)+$", "(a+a+)+$", "(a{1,9}){1,9}c", "(?:a|a|a|a)+$", "(x*a*x*a*)*c", "(\\w+\\s?)*$!", "(\\w*)*!",
    "(a+)+\\1$", "(?=(a+)+$)a", "(?<=(a+)+c)b", "(.+)+\\n\\n\\n", "([a-z]+)*=", "(a*a*a*a*a*a*)*d", "(a|b|ab)*c",
    "(?:(?:a*)*)*d", "(aa*)*d", "(?i)(A+)+$", "(?s)(.*.*.*.*)*z", "a*a*a*a*a*a*a*a*a*d", "(?:a+){2,}d", "(a+){2,50}d",
)  # fmt: skip


def safe(answer: Answer) -> None:
    """Whatever is in it, a browser that is made to open this answer does nothing with it."""
    assert answer.headers["content-type"].split(";")[0] in ("application/json", "text/event-stream"), answer
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert answer.headers["cache-control"] == "no-store" and answer.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in answer.headers and "set-cookie" not in answer.headers
    # Only ASCII without controls: nothing invisible, nothing that acts in a terminal, no line but ours.
    assert answer.body.isascii() and not any(byte < 0x20 and byte != 0x0A for byte in answer.body)


@async_test
async def test_s1_questions_are_answered_by_constants_and_numbers_only(home: Path) -> None:
    assert len(set(QUESTIONS)) >= 60
    folder = home.parent
    (folder / "ask.py").write_text(ASK)
    (folder / "questions").write_bytes("".join(QUESTIONS).encode("latin-1"))
    async with serving(home) as server:
        conversation = await server.client().open("c1", shell="bash", cwd=str(folder))
        url = f"ws://127.0.0.1:{server.port}/v1/conversations/c1/ws?from_cursor=0"
        async with connect(
            url, additional_headers={"Authorization": f"Bearer {server.token}"}, max_queue=None
        ) as viewer:
            # A viewer is there, and is shown all of it.
            block = await conversation.exec_interactive(f"{sys.executable} ask.py questions")
            assert (await conversation.wait_for("ASKED", from_cursor=block.cursor)).matched
            # The engine answers in order, before what is typed after them.
            await conversation.wait_for({"idle_ms": 200}, from_cursor=block.cursor)
            await conversation.send("END")
            answer = await conversation.wait_for({"regex": "got ([0-9a-f]+)\\s"}, from_cursor=block.cursor)
            shown = b""
            while b"ASKED" not in shown:
                frame = await viewer.recv()
                shown += frame if isinstance(frame, bytes) else b""
            assert QUESTIONS[0].encode() in shown
            assert (await conversation.wait_for({"token": "PROMPT"})).matched
        assert answer.groups is not None
        got = bytes.fromhex(answer.groups["1"]).decode()
        rest = got.removesuffix("END")
        # Numbers in a fixed frame, colours, our own name: nothing that the program has printed.
        own_answers = re.compile(
            r"\x1b\[[?>]?[\d;]{0,24}(?:[cnRut]|\$y)|\x1bP>\|blockpty\x1b\\"
            r"|\x1bP[01]\$r(?:[\d;]{0,24}(?:[mr]|[ \"]q|\"p)?)?\x1b\\"
            r"|\x1b\](?:4;\d+|1[012]);rgb:[0-9a-f]{4}(?:/[0-9a-f]{4}){2}(?:\x07|\x1b\\)"
        )
        assert own_answers.sub("", rest) == "" and len(own_answers.findall(rest)) > 20
        assert "OWNED" not in got and "dG91" not in got
        assert not (folder / "OWNED").exists()
        # The same file, only shown, gets no answer, and what follows is typed at a clean prompt.
        assert (await conversation.run("cat questions; echo")).block.exit_status == 0
        assert (await conversation.run("echo next")).output == "next\n"
        events = [event.to_dict("c1") async for event in conversation.events(from_seq=0, follow=False)]
        typed = [event["bytes"] for event in events if event["type"] == "input" and event["author"] == "engine"]
        assert sum(typed) == len(got) - len("END")


@async_test
async def test_s2_s4_what_is_hostile_is_only_ever_data(home: Path) -> None:
    assert len(set(MARKUP)) >= 30
    async with serving(home) as server:
        conversation = await server.client().open("c1", shell="bash")
        for text in MARKUP:
            ran = await conversation.run(f"printf %s {quoted(text)}")
            assert ran.output == text.replace("\r\n", "\n") or "\x1b" in text, "it was printed"
        folder = home.parent / "<script>alert(1)</script>".replace("/", "\x1b]0;x\x07")
        folder.mkdir()
        await conversation.run("echo here", cwd=str(folder))
        hostile = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
        for path in (
            "/v1/conversations", "/v1/conversations/c1/status", "/v1/conversations/c1/blocks", "/openapi.json",
            "/v1/conversations/c1/blocks/b1", "/v1/conversations/c1/events?follow=false",
            *(f"/v1/conversations/c1/read?max_bytes=999999&view={view}" for view in ("raw", "ansi", "text")),
            *("/v1/conversations/c1/read?view=rendered", f"/v1/conversations/{hostile}/status"),
            *(f"/v1/conversations/c1/blocks/{hostile}", f"/{hostile}"),
            *(f"/v1/conversations/c1/read?view={hostile}", f"/v1/conversations/c1/read?{hostile}=1", "/healthz"),
        ):  # fmt: skip
            answer = await server.ask("GET", path)
            safe(answer)
        events = await server.ask("GET", "/v1/conversations/c1/events?follow=false")
        parts = events.body.decode().removesuffix("\n\n").split("\n\n")
        assert parts[-1] == "event: end\ndata: {}"
        for number, part in enumerate(parts[:-1]):
            head, kind, data = part.split("\n")
            content = json.loads(data.removeprefix("data: "))
            assert (head, kind) == (f"id: {number}", f"event: {content['type']}"), "no program writes an event"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@async_test
async def test_s5_a_runaway_pattern_costs_only_its_caller(home: Path) -> None:
    assert len(set(EVIL)) == 30
    async with serving(home) as server:
        conversation = await server.client().open("c1", shell="bash")
        begun = await conversation.run("head -c 1000000 /dev/zero | tr '\\0' a; echo '!'", max_bytes=100)
        others = await server.client().open("c2", shell="bash")

        async def evil(pattern: str) -> tuple[int, str]:
            wait = {"match": {"regex": pattern}, "from_cursor": begun.block.span[0], "timeout_ms": 300}
            answer = await server.ask("POST", "/v1/conversations/c1/wait_for", wait)
            # An answer that takes long has the status 200 before it is known to be an error.
            return answer.status, answer.content.get("reason") or answer.code

        asked = [asyncio.ensure_future(evil(pattern)) for pattern in EVIL]
        served = 0
        while not all(one.done() for one in asked):
            assert (await others.run("echo fine")).output == "fine\n"
            served += 1
        assert served >= 3, "others were held up until the last pattern was through"
        for pattern, (status, how) in zip(EVIL, [await one for one in asked], strict=True):
            known = ("matched", "prompt", "timeout", "bad_condition") if status == 200 else ("bad_condition",)
            assert status in (200, 400) and how in known, (pattern, status, how)
        assert (await server.ask("GET", "/healthz")).status == 200
