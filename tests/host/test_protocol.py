"""The protocol of the host's sockets: lines, descriptors beside them, names, and a directory that is ours alone."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from blockpty.host import protocol
from blockpty.host.protocol import Channel, Refused, decode, encode, is_conversation_id


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    one, other = map(Channel, socket.socketpair())
    yield one, other
    one.close()
    other.close()


@pytest.mark.parametrize("text", ["", "\n", "é\u6771", "\udcff", "\0", "a" * 100_000])
def test_a_message_is_one_line_of_ascii_and_comes_back(text: str) -> None:
    line = encode({"text": text})
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert decode(line[:-1]) == {"text": text}


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"1", b"null", b'"a"', b"\xff", b"{} {}", b"[" * 200_000])
def test_a_line_that_is_no_object_is_a_bad_request(line: bytes) -> None:
    with pytest.raises(Refused) as refused:
        decode(line)
    assert refused.value.code == "bad_request"


@pytest.mark.parametrize("name", ["a", "0", "A.b_c-d", "a" * 128])
def test_a_plain_name_may_name_a_conversation(name: str) -> None:
    assert is_conversation_id(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".a", "-a", "_a", "a/b", "a\n", "a\0", "é", "\u0663", "a" * 129, None, 1, b"a"]
)
def test_what_could_be_a_path_or_an_option_names_no_conversation(name: object) -> None:
    assert not is_conversation_id(name)


def test_a_line_is_received_when_its_end_has_come(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    assert other.receive() == []
    for part, lines in ((b"ab", []), (b"c", []), (b"\nd", [b"abc"]), (b"\n\ne\n", [b"d", b"", b"e"])):
        one.sock.send(part)
        assert other.receive() == lines
    one.sock.close()
    assert other.receive() == []
    assert other.ended


def test_a_line_without_an_end_ends_the_connection(
    ends: tuple[Channel, Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = ends
    monkeypatch.setattr(protocol, "MAX_LINE", 10)
    one.sock.send(b"a" * 10)
    assert other.receive() == []
    assert not other.ended
    one.sock.send(b"a")
    assert other.receive() == []
    assert other.ended


def test_what_the_socket_does_not_take_goes_later_in_order(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    big = "a" * 4_000_000
    assert not one.send({"text": big})
    assert not one.send({"text": "last"})
    lines: list[bytes] = []
    while len(lines) < 2:
        one.flush()
        lines += other.receive()
    assert [decode(line) for line in lines] == [{"text": big}, {"text": "last"}]
    assert one.flush()


def test_a_reader_that_never_reads_is_given_up(
    ends: tuple[Channel, Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "MAX_UNSENT", 1_000_000)
    one, _ = ends
    one.send({"text": "a" * 4_000_000})
    assert one.ended


def test_descriptors_are_there_with_their_line_and_are_not_inherited(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    reader, writer = os.pipe()
    try:
        one.send({"before": 1})
        one.send({"with": 1}, [reader])
        lines: list[bytes] = []
        while len(lines) < 2:
            lines += other.receive()
        (got,) = other.fds
        assert os.path.sameopenfile(got, reader)
        assert not os.get_inheritable(got)
        other.drop_fds()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(got)
    finally:
        os.close(reader)
        os.close(writer)


def test_the_directory_of_the_host_is_made_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        os.close(protocol.open_host_directory(str(tmp_path / "home")))
        assert os.umask(0) == 0
    finally:
        os.umask(old)
    assert (tmp_path / "home" / "host").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("what", ["link", "file", "open to others"])
def test_a_directory_that_others_could_reach_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "host"
    if what == "link":
        (tmp_path / "elsewhere").mkdir(0o700)
        path.symlink_to(tmp_path / "elsewhere")
    elif what == "file":
        path.write_bytes(b"")
    else:
        path.mkdir()
        path.chmod(0o710)
    with pytest.raises(Refused) as refused:
        protocol.open_host_directory(str(tmp_path))
    assert refused.value.code == "spawn_failed"


def test_a_socket_is_reached_below_a_path_longer_than_its_address(tmp_path: Path) -> None:
    directory = protocol.open_host_directory(str(tmp_path / ("a" * 120)))
    with socket.socket(socket.AF_UNIX) as listener:
        assert protocol.connect(directory) is None
        with protocol.socket_address(directory) as address:
            listener.bind(address)
        listener.listen()
        found = protocol.connect(directory)
        assert found is not None
        assert protocol.peer_uid(found) == os.geteuid()
        found.close()
    assert protocol.connect(directory) is None
    os.close(directory)
