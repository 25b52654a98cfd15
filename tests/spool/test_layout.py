"""Names: which are allowed, where files lie, and who may look into the directories."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from blockpty.errors import BadRequest, SpoolCorrupt
from blockpty.spool.layout import (
    Layout,
    check_conversation_id,
    conversations_directory,
    default_home,
    make_private,
    out_name,
)

GOOD = ("a", "0", "c1", "A.b_c-D", "9" * 128, "a..b", "con", "aux.txt", "a-", "a.", "x_", "2024-01-01.build")

HOSTILE = (
    *("", ".", "..", "...", ".hidden", "-rf", "_x", "--help", "~", "~root", "/", "//", "/etc/passwd", "a/b", "a/../b"),
    *("../x", "..\\x", "a\\b", "C:\\x", "c:x", "\\\\host\\share", "a\0b", "\0", "a\n", "a\nb", "\n", "a\r", "a\tb"),
    *(" ", " a", "a ", "a b", "a\u00a0b", "é", "eé", "ａ", "а", "٣", "a\u0301", "\u200b", "a\u200b", "a\u202eb"),
    *("a\ufeff", "\ud800", "a\udcff", "💥", "a;b", "a|b", "a&b", "a$b", "$(x)", "`x`", "a'b", 'a"b', "a*", "?"),
    *("a:b", "a%2fb", "%2e%2e", "a+b"),
    *("a=b", "a,b", "a@b", "a!b", "#", "[a]", "{a}", "<a>", "x" * 129, "x" * 4096, "\x1b[31m", "a\x7f"),
)  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_good_name_is_kept_as_it_is(name: str) -> None:
    assert check_conversation_id(name) == name


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused_and_never_mapped(name: str) -> None:
    with pytest.raises(BadRequest) as raised:
        check_conversation_id(name)
    assert raised.value.hint
    assert str(raised.value).isprintable()


def test_there_are_sixty_hostile_names() -> None:
    assert len(set(HOSTILE)) >= 60


@pytest.mark.parametrize("name", [None, 1, b"c1", ["c1"], True, Path("c1")])
def test_only_text_is_a_name(name: object) -> None:
    with pytest.raises(BadRequest):
        check_conversation_id(name)


def test_where_everything_lies(tmp_path: Path) -> None:
    layout = Layout(conversations_directory(tmp_path) / "c1")
    names = {
        name: getattr(layout, name).relative_to(tmp_path).as_posix()
        for name in ("meta", "stream", "timeline", "events", "blocks", "outputs", "commands", "checkpoint", "lock")
    }
    assert names == {
        "meta": "conversations/c1/meta.json",
        "stream": "conversations/c1/stream",
        "timeline": "conversations/c1/timeline.jsonl",
        "events": "conversations/c1/events.jsonl",
        "blocks": "conversations/c1/blocks.jsonl",
        "outputs": "conversations/c1/blocks",
        "commands": "conversations/c1/commands",
        "checkpoint": "conversations/c1/checkpoint.json",
        "lock": "conversations/c1/owner.lock",
    }
    assert out_name(7, 1_700_000_000_123) == "blocks/7_1700000000123.out"


def test_the_home_is_looked_up_in_this_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKPTY_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    assert default_home() == tmp_path / "own"
    monkeypatch.setenv("BLOCKPTY_HOME", "")
    assert default_home() == tmp_path / "state" / "blockpty"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_home() == tmp_path / "user" / ".local" / "state" / "blockpty"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLOCKPTY_HOME", "relative")
    assert default_home() == tmp_path / "relative"


def test_a_private_directory_is_0700_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o750, 0o701])
def test_an_open_directory_is_closed_to_others(tmp_path: Path, mode: int) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    directory.chmod(mode)
    make_private(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_what_is_no_directory_of_ours_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("link", "file", "dangling"):
        with pytest.raises(SpoolCorrupt) as raised:
            make_private(tmp_path / name)
        assert raised.value.hint
    assert not (tmp_path / "nowhere").exists()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(SpoolCorrupt):
        make_private(tmp_path / "real")
