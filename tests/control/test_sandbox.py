"""Sandbox profiles: what a table may say, and the order in which paths hold."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.control.sandbox import DEFAULT, HIDDEN, SandboxProfile, arrange, find_profile, is_below, parse_profiles
from blockpty.errors import BadRequest


def test_without_a_table_there_is_the_default() -> None:
    assert parse_profiles({}) == {"default": DEFAULT}
    assert (DEFAULT.method, DEFAULT.network, DEFAULT.cwd) == ("auto", False, "read_write")
    assert "~/.ssh" in HIDDEN


def test_a_table_is_a_profile() -> None:
    table = {
        "method": "bwrap", "network": True, "cwd": "read_only", "read_write": ["/srv/a", "~/b"], "read_only": ["/c"],
        "hide": ["~/d"], "env": {"A": "1"},
    }  # fmt: skip
    found = parse_profiles({"build": table})
    assert found["build"] == SandboxProfile(
        "build", "bwrap", True, "read_only", ("/srv/a", "~/b"), ("/c",), ("~/d",), {"A": "1"}
    )
    assert find_profile(found, "default") is DEFAULT
    with pytest.raises(BadRequest, match="'other'") as caught:
        find_profile(found, "other")
    assert "build" in caught.value.hint


@pytest.mark.parametrize(
    ("tables", "where"),
    [
        ([], "sandbox is not a table"),
        ({"x": 3}, "sandbox.x is not a table"),
        ({"x": {"netwrok": True}}, "sandbox.x.netwrok"),
        ({"x": {"network": 1}}, "sandbox.x.network"),
        ({"x": {"method": "chroot"}}, "sandbox.x.method"),
        ({"x": {"cwd": "none"}}, "sandbox.x.cwd"),
        ({"x": {"hide": "~/.ssh"}}, "sandbox.x.hide"),
        ({"x": {"hide": [3]}}, "sandbox.x.hide"),
        ({"x": {"read_write": ["relative"]}}, "sandbox.x.read_write"),
        ({"x": {"read_write": ["/a/../etc"]}}, "sandbox.x.read_write"),
        ({"x": {"read_write": ["~other/x"]}}, "sandbox.x.read_write"),
        ({"x": {"read_only": ["/a\0b"]}}, "sandbox.x.read_only"),
        ({"x": {"env": {"A": 1}}}, "sandbox.x.env"),
    ],
)
def test_what_is_wrong_is_named(tables: Any, where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_profiles(tables)
    assert where in caught.value.message


def _arrange(written: list[str], fixed: list[str], hidden: list[str]) -> list[tuple[str, str]]:
    mounts = arrange(
        written, fixed, hidden, ["/tmp"], home="/h/state", directory="/h/state/conversations/c1", user_homes=["/h"]
    )
    return list(mounts.entries)


def test_the_deeper_path_decides_and_the_home_is_last() -> None:
    assert _arrange(["/tmp/p"], ["/tmp/p/.git"], ["/tmp/p/.git/secret", "/h/.ssh"]) == [
        ("own", "/tmp"),
        ("rw", "/tmp/p"),
        ("hide", "/h/.ssh"),
        ("ro", "/tmp/p/.git"),
        ("hide", "/tmp/p/.git/secret"),
        ("hide", "/h/state"),
        ("ro", "/h/state/conversations/c1"),
    ]


def test_of_equal_paths_the_stricter_one_holds() -> None:
    assert ("ro", "/p") in _arrange(["/p"], ["/p"], [])
    assert ("hide", "/q") in _arrange([], ["/q"], ["/q"])


@pytest.mark.parametrize("path", ["/", "/h", "/h/state", "/h/state/conversations", "/h/.ssh", "/h/.ssh/x"])
def test_what_would_open_the_boundary_cannot_be_written_to(path: str) -> None:
    with pytest.raises(BadRequest, match="cannot write to"):
        _arrange([path], [], ["/h/.ssh"])


def test_below() -> None:
    assert is_below("/a/b", "/a")
    assert is_below("/a", "/a")
    assert is_below("/a", "/")
    assert not is_below("/ab", "/a")
