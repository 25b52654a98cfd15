"""Checksummed lines: every damage is found, and what is no JSON object is no line."""

from __future__ import annotations

import json

import orjson
import pytest

from blockpty.files.lines import decode_line, digest_of, is_sound, link_of, linked, sealed


def test_every_single_flipped_bit_is_found() -> None:
    whole = sealed(b'{"offset":379,"ts":1700000000050,"kind":"tick"}')[:-1]
    assert is_sound(whole) is True
    for place in range(len(whole)):
        for bit in range(8):
            damaged = whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
            assert is_sound(damaged) is not True


def test_a_line_without_a_seal_says_so() -> None:
    for line in (b"", b"{}", b'{"kind":"tick"}', b'{"crc":"0"}', b',"crc":"00000000"'):
        assert is_sound(line) is None


@pytest.mark.parametrize("loads", [json.loads, orjson.loads])
def test_a_line_is_decoded_unless_it_is_damaged(loads: object) -> None:
    assert callable(loads)
    line = sealed(b'{"offset":3}')[:-1]
    assert decode_line(line, loads) == {"offset": 3, "crc": line[-10:-2].decode()}
    assert decode_line(b"\0\0" + line, loads) == decode_line(line, loads)
    assert decode_line(b'{"offset":3}', loads) == {"offset": 3}
    for damaged in (line.replace(b"3", b"4", 1), line[:-1], b"", b"[]", b"3", b"{", b"\xff{}"):
        assert decode_line(damaged, loads) is None


def test_a_line_nested_too_deeply_is_none() -> None:
    assert decode_line(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}") is None


def test_a_link_is_the_digest_of_the_whole_line_before_it() -> None:
    first = linked(b'{"offset":3}', link_of(b""), digest_of([b"ab", b"c"]))
    second = linked(b'{"offset":3}', link_of(first[:-1]), None)
    found = decode_line(second[:-1])
    assert found is not None and found["prev"] == digest_of([first[:-1]]) and "sum" not in found
    assert json.loads(first)["sum"] == digest_of([b"abc"])
    assert link_of(b"\0\0" + first[:-1]) == link_of(first[:-1])
