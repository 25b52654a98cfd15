"""What a source's text means: which program, with which arguments, and that no name becomes an option."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.errors import BadRequest, SpawnFailed
from blockpty.host.sources import KINDS, parse_source, plan_source

SSH = ("ssh", "-tt", "-e", "none", "-o", "SendEnv=LANG LC_*")


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("exec:a 'b c' \"$d\"", ("a", "b c", "$d")),
        ('exec:["a","b c"]', ("a", "b c")),
        ("exec:[ x ]", ("[", "x", "]")),
        ("ssh:host", (*SSH, "--", "host")),
        ("ssh:me@host.example:2222", (*SSH, "-p", "2222", "-l", "me", "--", "host.example")),
        ("ssh:me@[fe80::1%eth0]:22", (*SSH, "-p", "22", "-l", "me", "--", "fe80::1%eth0")),
    ],
)
def test_the_arguments(text: str, argv: tuple[str, ...]) -> None:
    source = parse_source(text)
    assert source is not None
    assert (source.argv, source.text, source.kind) == (argv, text, text.partition(":")[0])


def test_a_container_gets_a_shell_on_a_terminal() -> None:
    docker, kubectl = parse_source("container:docker/web"), parse_source("container:kubectl/prod/web-1")
    assert docker is not None and kubectl is not None
    assert docker.argv[:6] == ("docker", "exec", "-it", "-e", "TERM=xterm-256color", "web")
    assert kubectl.argv[:7] == ("kubectl", "exec", "-it", "-n", "prod", "web-1", "--")


def test_a_shell_is_no_source() -> None:
    assert parse_source("shell") is None


@pytest.mark.parametrize(
    "text",
    ["", "shell:", "exec", "exec:", "exec:\0", "exec:'", "ssh:-v", "ssh:a@-v", "ssh:h:0", "ssh:h:65536", "ssh:h;x",
     "container:x", "container:docker/a/b", "container:docker/--rm", f"exec:{'x' * 20_000}"],
)  # fmt: skip
def test_what_names_nothing(text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_source(text)
    assert refused.value.hint


def test_the_plan_has_a_clean_environment() -> None:
    source = parse_source("exec:sh -c x")
    assert source is not None
    plan = plan_source(source, {"PATH": "/usr/bin:/bin", "SECRET": "x", "LANG": "C.UTF-8"}, {"A": "1"})
    assert plan.name == "sh" and plan.argv[0].startswith("/") and plan.argv[1:] == ("-c", "x")
    assert plan.env["A"] == "1" and plan.env["TERM"] == "xterm-256color" and "SECRET" not in plan.env
    missing = parse_source("exec:no-such-program")
    assert missing is not None
    with pytest.raises(SpawnFailed):
        plan_source(missing, {"PATH": "/usr/bin:/bin"})
    assert set(KINDS) >= {"exec", "ssh", "container"}


@pytest.mark.parametrize(("text", "is_piped"), [("ssh:x", True), ("exec:true", False), ("container:docker/x", False)])
def test_who_writes_into_a_pipe(tmp_path: Path, text: str, is_piped: bool) -> None:
    for name in ("ssh", "docker", "true"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o700)
    source = parse_source(text)
    assert source is not None
    assert plan_source(source, {"PATH": str(tmp_path)}).is_piped is is_piped
