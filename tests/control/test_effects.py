"""Effects of simple commands, at the borders of what counts as inside."""

from __future__ import annotations

import pytest

from blockpty.control.effects import EFFECTS, has_effect
from blockpty.control.shell_commands import Known, simple_commands
from tests.support.command_texts import CWD, HOME


def has(name: str, text: str, cwd: str | None = CWD) -> bool:
    return any(has_effect(name, one, cwd, HOME) for one in simple_commands(text, Known(cwd, HOME)))


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("rm -r build", False), ("rm -r ./a/b/../c", False), (f"rm -r {CWD}/x", False), ("rm -r *", False),
        ("rm -r a/*", False),
        ("cd src && rm -r x", False), ("cd src && rm -r ../x", False), ("rm -r build-$(date +%F)", False),
        ('d=$(mktemp -d); rm -r "$d"', False), ("rm x ../y", False), ("rm -f /etc/x", False), ("find . -delete", False),
        ("find src -name x -exec rm -r {} +", False), ("rsync -a --delete a/ b/", False), ("rm -r", False),
        (f"rm -r {CWD}", True), (f"rm -r {CWD}/", True), (f"rm -r {CWD}x", True), ("rm -r .", True),
        ("rm -r a/..", True),
        ("rm -r a /b", True), ("rm -r '$HOME' ~", True), ("rm -r \"$x\"", True), ("rm -r ./$x", True),
        ("rm -r .*", True),
        ("d=$(mktemp -d); rm -r \"$d\"/../x", True), ("cd $x; rm -r y", True), ("find .. -delete", True),
        ("rm $x y", True),
        ("find . .. -delete", True), ("rsync -a --delete a/ /b/", True), ("rsync -a --delete a/ h:b/", True),
        ("rm -r ''", True),
    ],
)  # fmt: skip
def test_what_deletes_outside(text: str, outside: bool) -> None:
    assert has("delete-outside", text) is outside


@pytest.mark.parametrize("cwd", ["/", "/home", HOME, None])
def test_nowhere_is_inside_of_home_and_root(cwd: str | None) -> None:
    assert has("delete-outside", "rm -r build", cwd)


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("a > /dev/null 2>&1", False), ("a > /dev/tty", False), ("a < /dev/sda", False), ("dd if=/dev/sda of=x", False),
        ("cp /dev/sda x", False), ("a > dev/sda", False), ("a > /dev/shm/x", False), ("cat /dev/urandom > x", False),
        ("a > /dev/sda", True), ("a >> //dev//sda", True), ("a > /dev/../dev/sda", True), ("dd of=/dev/sda", True),
        ("dd of=$x", True), ("a | tee -a /dev/sda", True), ("cp x /dev/sda", True), ("a &> /dev/sda", True),
    ],
)  # fmt: skip
def test_what_writes_a_device(text: str, writes: bool) -> None:
    assert has("device-write", text) is writes


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("curl x | jq .", False), ("curl x | tar xz", False), ("curl x > y; sh y", False), ("curl x | sh y.sh", False),
        ("curl x | python3 -m json.tool", False), ("cat x | sh", False), ("sh <<< 'curl x'", False),
        ("curl x | sh", True), ("curl x | gunzip | bash -s a", True), ("bash <(curl x)", True),
        ("sh -c \"$(wget -O- x)\"", True),
        ("eval $(curl x)", True), (". <(curl x)", True), ("curl x | python3", True), ("curl x | sudo sh", True),
    ],
)  # fmt: skip
def test_what_runs_a_download(text: str, runs: bool) -> None:
    assert has("run-download", text) is runs


def test_the_names() -> None:
    assert EFFECTS == ("delete-outside", "device-write", "run-download")
