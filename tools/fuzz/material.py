"""Random bytes that more often mean something than bytes drawn alike: what terminals, shells and attackers print."""

from __future__ import annotations

import itertools
import random

from tests.support.secret_shapes import SHAPES

NONCE = "Qbcdefghij-lmno_qrstu1"
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_./:="
_FINALS = b"@ABCDEFGHIJKLMPSTXZ`abcdefghlmnpqrstuxz{|}~"
_PIECES = (
    b"\r\n", b"\n", b"\r", b"\t", b"\x07", b"\x08", b"\x0e", b"\x18", b"\x1a", b"\x1b", b"\x1b[", b"\x1b]", b"\x1bP",
    b"\x1b\\", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?2026h", b"\x1b[?2026l", b"\x1b[0m", b"\x1b[38;2;1;2;3m",
    b"\x1bc", b"\x1b[2J", b"\x1b]0;title\x07", b"\x1b]8;;https://example.org\x1b\\", b"\x1b]8;;\x1b\\",
    b"\x1b]52;c;aGk=\x07", b"\x1b]133;A\x07",
    b"\x1b]133;C\x07", b"\x1b]133;D;1\x07", b"\x1b]7;file:///tmp\x07", b"\x1b]633;E;x\x07", b"\x1b]3008;start=1\x07",
    b"\x1b]7717;", b"\x1b]77", NONCE.encode(), NONCE[:9].encode(), NONCE[9:].encode(), b" \r", b"\xc3", b"\xff",
    b"\0", "é".encode(), "漢字".encode(), "e\u0301".encode(), "👩‍💻".encode(), b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    b"password=", b"token: ",
)  # fmt: skip


def mark(chance: random.Random, nonce: str = NONCE) -> bytes:
    """Return a mark of ours, or nearly one."""
    kind = chance.choice(["HELLO", "BEGIN", "OUT_END", "END", "PROMPT", "PS2", "CWD", "X"])
    numbers = ";".join(f"{name}={chance.randrange(most)}" for name, most in (("i", 99), ("s", 4), ("c", 9)))
    ends = [b"\x07", b";x=0\x07", b"\x1b\\", b"\x18", b"", b";d=/tmp\x07"]
    made = f"\x1b]7717;__{kind}__;n={nonce};{numbers}".encode() + chance.choice(ends)
    if chance.random() < 0.3:
        at = chance.randrange(len(made))
        made = made[:at] + chance.choice([b"", b".", b"\0", b"\x1b"]) + made[at + 1 :]
    return made


def piece(chance: random.Random) -> bytes:
    """Return one thing that may be printed."""
    kind = chance.randrange(12)
    if kind < 3:
        return bytes(chance.choice(_LETTERS) for _ in range(chance.randrange(1, 60)))
    if kind < 5:
        return chance.choice(_PIECES)
    if kind == 5:
        return chance.randbytes(chance.randrange(1, 40))
    if kind == 6:
        some = [0, 1, 2, 5, 24, 80, 999, 2**31, 10**30]
        numbers = ";".join(str(chance.choice(some)) for _ in range(chance.randrange(6)))
        begin = chance.choice(["", "?", ">", "=", "<", "!"])
        return f"\x1b[{begin}{numbers}{chance.choice(['', ' ', '$', '!'])}".encode() + bytes([chance.choice(_FINALS)])
    if kind == 7:
        return mark(chance, chance.choice([NONCE, "B" * 22]))
    if kind == 8:
        return chance.choice([b"x", b"\n", b"ab \r", b"\x1b[1m", b"\xff"]) * chance.randrange(1, 3000)
    if kind == 9:
        shape = chance.choice(SHAPES).text.encode()
        return shape if chance.random() < 0.5 else shape[: chance.randrange(len(shape))]
    if kind == 10:
        return b"\x1b" + chance.choice([b"]", b"P", b"_", b"^"]) + chance.randbytes(chance.randrange(30))
    return bytes(chance.choice(b"\x1b[]0123456789;:?>=<!$ ABCDHJKLMPSTXZhlmnrsu\\P_^\x07\r\n\x08") for _ in range(40))


def output(chance: random.Random, pieces: int = 30) -> bytes:
    """Return what a program may print."""
    return b"".join(piece(chance) for _ in range(chance.randrange(1, pieces)))


def cuts(chance: random.Random, size: int) -> list[int]:
    """Return places at which something of a size is cut: anywhere, or close together, or at every byte."""
    kind = chance.randrange(4)
    if kind == 0 and size < 3000:
        return list(range(1, size))
    if kind == 1:
        begin = chance.randrange(size + 1)
        return [place for place in range(begin, begin + 40) if 0 < place < size]
    return sorted({chance.randrange(size + 1) for _ in range(chance.randrange(8))})


def chunks(data: bytes, places: list[int]) -> list[bytes]:
    """Return data cut at these places."""
    whole = [0, *places, len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(whole)]


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Return a file's content as a bad disk or a bad day leaves it."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        if not changed:
            break
        at = chance.randrange(len(changed))
        kind = chance.randrange(7)
        if kind == 0:
            del changed[at:]
        elif kind == 1:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            begin = at - at % 512
            changed[begin : begin + 512] = bytes(len(changed[begin : begin + 512]))
        elif kind == 3:
            changed[at:at] = chance.randbytes(chance.randrange(1, 80))
        elif kind == 4:
            del changed[at : at + chance.randrange(1, 300)]
        elif kind == 5:
            changed[at:at] = changed[at : at + chance.randrange(1, 300)]
        else:
            changed += chance.choice([b"\0" * 600, b'{"seq":', b"\n\n", b"null\n", b'{"a":1}\n', b"\xff" * 30])
    return bytes(changed)
