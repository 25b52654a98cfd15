"""Environment of a shell: whose it is, and what keeps programs from waiting for a key in a pager."""

from __future__ import annotations

from pathlib import Path

import pytest

import blockpty
from blockpty.control.principals import OWNER, acting
from blockpty.errors import BadRequest
from blockpty.host.shells import NO_PAGERS
from tests.support.async_tests import async_test

pytestmark = pytest.mark.needs("bash")
SHOW = 'echo "$LANG|$VIRTUAL_ENV|$PAGER|$GIT_PAGER|$SECRET"'


@async_test
async def test_the_callers_environment_is_kept_as_far_as_the_list_goes(home: Path) -> None:
    caller = {"LANG": "de_DE.UTF-8", "VIRTUAL_ENV": "/env", "SECRET": "x", "PATH": "/usr/bin:/bin"}
    async with blockpty.Engine(home) as engine:
        async with engine.open(shell="bash", env_from=caller, pagers=True) as conversation:
            assert (await conversation.run(SHOW)).output == "de_DE.UTF-8|/env|||\n"
            # What is added stands above it, and a new shell has the same.
            await conversation.reset()
            assert (await conversation.run(SHOW)).output == "de_DE.UTF-8|/env|||\n"
        async with engine.open(shell="bash", env_from=caller, env={"LANG": "C", "SECRET": "y"}) as conversation:
            assert (await conversation.run(SHOW)).output == "C|/env|cat|cat|y\n"
        with pytest.raises(BadRequest, match="env_from"):
            await engine.open(shell="bash", env_from="mine")


@async_test
async def test_a_client_gives_its_own_and_not_the_servers(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    async with blockpty.Client(home) as client:
        await client.list()  # the server has the environment of now
        monkeypatch.setenv("LANG", "sv_SE.UTF-8")
        monkeypatch.setenv("VIRTUAL_ENV", "/later")
        async with client.open(shell="bash") as conversation:
            assert (await conversation.run("echo $LANG $VIRTUAL_ENV")).output == "sv_SE.UTF-8 /later\n"
        async with client.open(shell="bash", env_from="server") as conversation:
            assert (await conversation.run("echo $LANG $VIRTUAL_ENV")).output == "C.UTF-8\n"


@async_test
async def test_pagers_are_for_persons(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        for options, expected in (({}, "cat"), ({"pagers": True}, ""), ({"env": {"PAGER": "more"}}, "more")):
            async with engine.open(shell="bash", env_from={}, **options) as conversation:  # type: ignore[arg-type]
                assert (await conversation.run("echo $PAGER")).output == f"{expected}\n"
        with acting(OWNER.as_person()):
            async with engine.open(shell="bash", env_from={"PAGER": "less -S"}) as conversation:
                assert (await conversation.run("echo $PAGER")).output == "less -S\n"


@async_test
async def test_a_long_log_needs_no_key(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine, engine.open(shell="bash", cwd=str(tmp_path)) as conversation:
        assert set(NO_PAGERS) - {"LESS"} == {name for name, value in NO_PAGERS.items() if value == "cat"}
        made = await conversation.run(
            "git init -q . && for i in $(seq 60); do git -c user.name=a -c user.email=a@b commit -q --allow-empty "
            "-m commit-$i; done; git --no-pager log --oneline | wc -l",
            timeout=60,
        )
        assert made.output == "60\n"
        shown = await conversation.run("git log --oneline", check=True)
        assert shown.output.count("commit-") == 60
