"""Ways to show a token in what is sent that keep it from being known as one."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Final

import pytest

import blockpty
from blockpty.redact.redaction import find_sent, redact_address, redact_spans, redact_title
from tests.support.async_tests import async_test
from tests.support.edited_lines import TOKEN

HALF, REST = TOKEN[:12], TOKEN[12:]
_UNSEEN: Final = {
    "joiner": 0x200D, "no-break space": 0xFEFF, "soft hyphen": 0xAD, "word joiner": 0x2060, "variation": 0xFE0F,
    "accent": 0x301, "enclosing": 0x20DD, "mongolian variation": 0x180E, "override": 0x202E, "isolate": 0x2066,
    "tag": 0xE0041, "arabic mark": 0x61C, "invisible times": 0x2062, "grapheme joiner": 0x34F, "anchor": 0xFFF9,
    "another variation": 0xE0100,
}  # fmt: skip
_INSIDE: Final = {
    "colours": "\x1b[38;5;1m", "a cursor's shape": "\x1b[1 q", "a private one": "\x1b[>4;2m",
    "a string": "\x1bPqab\x1b\\", "a picture": "\x1b_Gabc\x1b\\", "a link": "\x1b]8;;http://x\x07",
    "a mark": "\x1b]133;B\x07", "a charset": "\x1b(B\x0f",
    "shifts": "\x0e\x0f", "right and left": "\x1b[1C\x1b[1D", "saved": "\x1b7\x1b8", "saved by CSI": "\x1b[s\x1b[u",
    "erased behind": "\x1b[K\x1b[0K", "a column": "\x1b[13G", "another column": "\x1b[13`", "down and up": "\x1bD\x1bM",
    "a row and back": "\x0b\x1b[A", "a page": "\x0c", "a character too many": "X\b\x1b[X", "one taken out": "X\b\x1b[P",
    "NUL": "\0", "DEL": "\x7f", "BEL": "\x07", "ENQ": "\x05", "C1": "\x9b0m",
}  # fmt: skip
ATTACKS: Final = {
    **{f"{name}, everywhere": chr(code).join(TOKEN) for name, code in _UNSEEN.items()},
    **{f"{name}, once": f"{HALF}{chr(code)}{REST}" for name, code in _UNSEEN.items()},
    **{name: f"{HALF}{inside}{REST}" for name, inside in _INSIDE.items()},
    "struck": "".join(f"{one}\b{one}" for one in TOKEN),
    "put in": f"{TOKEN[:4]}{TOKEN[10:]}\x1b[30D\x1b[6@{TOKEN[4:10]}",
    "second half first": f"\x1b[13G{REST}\x1b[1G{HALF}",
    "from the right": "\x1b[50G" + "".join(f"{one}\x1b[2D" for one in reversed(TOKEN)),
    "right by so many": f"\x1b[12a{REST}\x1b[1G{HALF}",
    "two in one word": TOKEN + TOKEN,
    "behind another one": "AKIA" + "Q7" * 8 + "_x " + "npm_" + "4fK9" * 9 + TOKEN,
    "a title": f"\x1b]0;{TOKEN}\x07",
    "a title that was cut": f"\x1b]2;export T={TOKEN[:24]}\x07",
    "a title that was cut before more": f"\x1b]0;{TOKEN[:20]} /tmp\x07",
    "a title key by key": "".join(f"\x1b]2;{TOKEN[:length]}\x07" for length in range(12, 41)),
    "an icon": f"\x1b]1;{TOKEN}\x07",
    "a directory": f"\x1b]7;file://h/tmp/{TOKEN}\x07",
    "an encoded directory": f"\x1b]7;file://h/tmp/{TOKEN.replace('4', '%34')}\x07",
    "an encoded link": f"\x1b]8;;http://h/?a={TOKEN.replace('f', '%66')}\x07x\x1b]8;;\x07",
    "a notification": f"\x1b]777;notify;t;{TOKEN}\x07",
    "a privacy message": f"\x1b^{TOKEN}\x1b\\",
}
_BESIDE: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\(B|[^!-~]")


def seen(shown: str) -> str:
    """Return what is left when all is taken away that shows nothing, and codes stand for what they say."""
    return re.sub("%([0-9A-Fa-f]{2})", lambda code: chr(int(code[1], 16)), _BESIDE.sub("", shown))


def assert_none(shown: str) -> None:
    assert max(map(len, re.findall("[4fK9]+", seen(shown))), default=0) < 8, shown


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("before", [b"", b"\x1b[32mok\x1b[m a line of a log\r\n" * 40], ids=["alone", "behind lines"])
def test_no_part_of_a_token_is_left(name: str, before: bytes) -> None:
    data = before + ATTACKS[name].encode() + b"\r\nend\r\n"
    assert_none(redact_spans(data, find_sent(data).spans).decode())


def test_what_looks_like_one_stays() -> None:
    texts = ("\x1b]0;vim turkey-deadbeef.py\x07", "\x1b]2;sk-learn\x07", "e\u0301te\u0301 \u2714\ufe0f", "a\x0cb\x0bc")
    assert [find_sent(text.encode()).spans for text in texts] == [[]] * len(texts)
    assert redact_title("~/src (main)") == "~/src (main)"
    assert redact_address("file://h/a%20b/%7Ec") == "file://h/a%20b/%7Ec"


@pytest.mark.needs("bash")
@async_test
async def test_nor_in_what_a_screen_says_of_itself(home: Path, tmp_path: Path) -> None:
    encoded = TOKEN.replace("K", "%4B")
    (tmp_path / "it").write_text(
        f"\x1b]2;export T={TOKEN[:24]}\x07\x1b]7;file://h/tmp/{encoded}\x07\x1b]8;;http://h/{encoded}\x07here\x1b]8;;\x07\n"
        f"\x1b]52;c;{base64.b64encode(TOKEN.encode()).decode()}\x07"
    )
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run(f"cat {tmp_path}/it")
        for style in ("text", "json", "html", "ansi", "svg"):
            content = (await conversation.screen(format=style)).content
            assert "here" in content
            assert_none(content)
        for view in ("raw", "ansi"):
            assert_none((await conversation.read(0, view=view)).data)
        assert_none(str((await conversation.status()).to_dict()))
