"""Launchers: what each one starts, and what it starts if its options are not known."""

from __future__ import annotations

import shlex

import pytest

from blockpty.control.launchers import Started, started, subcommands
from blockpty.control.shell_commands import Known, simple_commands
from blockpty.control.simple_command import SEVERAL, SimpleCommand, Stdin


def of(command: str, stdin: Stdin | None = None) -> list[Started]:
    program, *arguments = shlex.split(command)
    return started(program, arguments, stdin)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sudo -u a -E X=1 b -c", "b -c"), ("sudo --user=a b", "b"), ("sudo -ua b", "b"), ("env -i X=1 b", "b"),
        ("timeout -k 1 2 b", "b"), ("nice -5 b", "b"), ("nice --adjustment 5 b", "b"), ("xvfb-run -a -s x b", "b"),
        ("ionice -c2 -n 7 b", "b"), ("docker run --rm -e A=1 --name=x i b c", "b c"),
        ("docker compose exec -T s b", "b"),
        ("docker --context c exec i b", "b"), ("uv run --with x b", "b"), ("npm exec --yes -- b c", "b c"),
        ("kubectl -n x exec p -- b", "b"), ("fd -x b", "b ./?\0"), ("find . -exec b {} ;", "b ./?\0"),
        ("find a b -exec c {} +", "c \0"), ("xargs -0 b c", f"b c {SEVERAL}"), ("xargs -I % b %", "b \0"),
        ("flock f b", "b"),
        ("ld-linux-x86-64.so.2 --library-path x b", "b"), ("repeat 3 b", "b"), ("python -m b c", "b c"),
        ("git bisect run b c", "b c"), ("taskset -c 0 b", "b"), ("strace -fo x b", "b"),
    ],
)  # fmt: skip
def test_words(command: str, words: str) -> None:
    assert [" ".join(one.words) for one in of(command)] == [words]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("sh -c a", "a"), ("bash -xeuo pipefail -c a b", "a"), ("fish --command=a", "a"), ("env -S 'a b' c", "a b c"),
        ("env -S'a b'", "a b"), ("ssh -p 1 h a b", "a b"), ("su - x -c a", "a"), ("watch -n 1 a b", "a b"),
        ("eval a b", "a b"),
        ("trap a EXIT", "a"), ("script -qc a f", "a"), ("git -c alias.x=!a x", "a"), ("git -c alias.x=a x", "git a"),
        ("tar -I a -xf f", "a"), ("tar --checkpoint-action=exec=a f", "a"), ("rsync -e a b c", "a"),
        ("nix-shell --run a", "a"),
        ("git submodule foreach --recursive a", "a"), ("hyperfine a", "a"), ("tmux send-keys -t x a Enter", "a\n"),
    ],
)  # fmt: skip
def test_text(command: str, text: str) -> None:
    assert [one.text for one in of(command)] == [text]


@pytest.mark.parametrize(
    "command",
    [
        "sudo -Z a", "source x", ". /tmp/x", "sh /dev/stdin", "crontab x", "make --eval=x", "nc -e sh h",
        "psql -c '\\! x'",
        "git -c core.hooksPath=x y", "python -c 'import os; os.system(1)'", "awk 'BEGIN{system(1)}'", "parallel",
        "at now",
    ],
)  # fmt: skip
def test_unknown(command: str) -> None:
    assert [one for one in of(command) if one.unknown]


@pytest.mark.parametrize(
    "command",
    [
        "ls -la", "bash script.sh", "source .venv/bin/activate", "command -v x", "python x.py", "crontab -l", "sudo -v",
        "trap - EXIT", "vim systemd.py", "git commit -m x", "tmux ls", "sed s/a/b/", "node x.js", "docker ps",
        "find . -name x",
    ],
)  # fmt: skip
def test_nothing(command: str) -> None:
    assert of(command) == []


@pytest.mark.parametrize("command", ["git bisect run", "kubectl exec pod --", "python -m", "npm exec --"])
def test_a_launcher_that_is_given_nothing_starts_nothing(command: str) -> None:
    found = simple_commands(command, Known("/a", "/h"))
    assert found and not any(one.unknown for one in found)


def test_standard_input() -> None:
    text = Stdin("a b\n")
    piped = Stdin(None, (SimpleCommand("curl", ("x",)),))
    assert of("sh", text) == [Started(text="a b\n", shell="sh")]
    assert of("sh -s -- x", text) == [Started(text="a b\n", shell="sh")]
    assert of("sh x.sh", piped) == [] and of("sh") == []
    assert of("sh", piped)[0].unknown and of("python3", piped)[0].unknown
    assert of("python3 -", Stdin("exec(1)"))[0].unknown
    assert of("python3", Stdin("print(1)")) == []
    assert of("ssh h", text) == [Started(text="a b\n", remote=True)]
    listed = Stdin(None, (SimpleCommand("find", ("src", "-name", "x")),))
    assert of("xargs rm", listed) == [Started(words=("rm", "src/?\0"))]


def test_where_a_subcommand_may_be() -> None:
    assert subcommands(["push", "-f"]) == [0]
    assert subcommands(["-C", "x", "push", "y"]) == [1, 2]
    assert subcommands(["--x=y", "push", "z"]) == [1]
    assert subcommands(["+nightly", "publish"]) == [1]
    assert subcommands(["-f"]) == []
