"""Sandboxed shells: which sandbox a profile makes, and that a shell behaves in it as anywhere."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from blockpty import Engine
from blockpty.errors import BadRequest, SpawnFailed
from blockpty.runtime import sandboxing
from tests.support.async_tests import async_test
from tests.support.policies import write_policy
from tests.support.sandboxes import SECRET, method, place_outside, sandboxed, user_home, works

__all__ = ["method", "user_home"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash"])
@async_test
async def test_a_shell_behaves_as_anywhere(
    shell: str, method: str, tmp_path: Path, home: Path, user_home: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    async with sandboxed(home, tmp_path, f'[sandbox.one]\nmethod = "{method}"\n', shell) as conversation:
        status = await conversation.status()
        assert conversation.opened is not None
        assert status.pid == conversation.opened.pid
        assert Path(f"/proc/{status.pid}/comm").read_text() == f"{shell}\n"
        assert status.sandbox is not None
        assert status.sandbox["method"] == method
        assert status.sandbox["writable"] == [str(tmp_path / "project")]
        assert str(user_home / ".ssh") in status.sandbox["hidden"]
        assert (await conversation.run("cd / && pwd")).output == "/\n"
        if shell != "dash":
            assert (await conversation.status()).cwd == "/"
        ran = await conversation.run("sh -c 'exit 7'")
        assert ran.exit_status == 7
        await conversation.exec_interactive("sh -c 'printf Name:; read x; echo got $x'")
        assert (await conversation.wait_for("Name:")).matched
        while (tty := (await conversation.status()).tty) not in ("reads_line", "at_prompt"):
            pass
        assert tty == "reads_line"
        await conversation.send("Ada\r")
        assert (await conversation.wait_for("got Ada")).matched
        await conversation.wait_for({"token": "PROMPT"})
        await conversation.exec_block("sleep 1000")
        while (await conversation.status()).foreground != "sleep":
            pass
        assert (await conversation.interrupt()).how == "SIGINT"
        assert (await conversation.status()).mode == "idle"
        assert (await conversation.status()).integrity == ("degraded" if shell == "dash" else "ok")
        await conversation.reset()
        again = await conversation.status()
        assert again.sandbox == status.sandbox
        assert (await conversation.run("touch /etc/x-blockpty")).exit_status != 0
        closed = await conversation.close()
        assert closed.exit is not None
        assert not Path(f"/proc/{again.pid}").exists()
        assert (await conversation.status()).sandbox is None
        assert (await conversation.verify()).clean


@async_test
async def test_a_profile_decides(method: str, tmp_path: Path, home: Path, user_home: Path) -> None:
    (more := tmp_path / "more").mkdir()
    (tmp_path / "project" / "kept").mkdir(parents=True)
    policy = (
        f'[sandbox.one]\nmethod = "{method}"\nread_write = ["{more}"]\nread_only = ["{tmp_path}/project/kept"]\n'
        'network = true\nenv = { PROFILE = "one" }\n'
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        async with sandboxed(home, tmp_path, policy) as conversation:
            assert (await conversation.run(f"echo x > {more}/new")).exit_status == 0
            assert (await conversation.run("echo x > kept/new")).exit_status == 1
            assert (await conversation.run("echo $PROFILE")).output == "one\n"
            assert (await conversation.run(f"echo x > /dev/tcp/127.0.0.1/{port}")).exit_status == 0
            assert (await conversation.run("f=$(mktemp) && echo x > $f && cat $f")).output == "x\n"
            status = await conversation.status()
            assert status.sandbox is not None
            assert status.sandbox["network"] is True


@async_test
async def test_a_directory_that_is_only_read(method: str, tmp_path: Path, home: Path, user_home: Path) -> None:
    async with sandboxed(home, tmp_path, f'[sandbox.one]\nmethod = "{method}"\ncwd = "read_only"\n') as conversation:
        assert (await conversation.run("pwd; touch x")).exit_status == 1
        assert not (tmp_path / "project" / "x").exists()


@async_test
async def test_the_program_around_the_shell_gets_none_of_its_variables(
    tmp_path: Path, home: Path, user_home: Path
) -> None:
    if why := works("bwrap"):
        pytest.skip(why)
    write_policy(home, "")
    (cwd := tmp_path / "project").mkdir()
    async with Engine(home) as engine:
        conversation = await engine.open(
            "c1", shell="bash", cwd=str(cwd), sandbox="default", env={"LD_PRELOAD": f"{cwd}/evil.so", "KEY": SECRET}
        )
        assert (await conversation.run("echo $KEY")).output == f"{SECRET}\n"
        pid = (await conversation.status()).pid
        while (parent := int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])) and Path(
            f"/proc/{parent}/comm"
        ).read_text() == "bwrap\n":
            assert SECRET.encode() not in Path(f"/proc/{parent}/environ").read_bytes()
            assert b"evil" not in Path(f"/proc/{parent}/cmdline").read_bytes()
            assert b"evil" not in Path(f"/proc/{parent}/environ").read_bytes()
            pid = parent


@pytest.mark.parametrize(
    ("policy", "profile", "said"),
    [
        ("", "none", "no sandbox profile is called 'none'"),
        ("[sandbox.one]\nnetwrk = true\n", "one", "network"),
        ('[sandbox.one]\nread_write = ["/nowhere/at-all"]\n', "one", "does not exist"),
        ('[sandbox.one]\nread_write = ["/"]\n', "one", "which holds"),
        ('[sandbox.one]\nread_write = ["~"]\n', "one", "which holds"),
        ('[sandbox.one]\nread_write = ["~/.ssh"]\n', "one", "is hidden"),
        ("[sandbox", "default", "TOML"),
    ],
)
@async_test
async def test_what_cannot_be_is_refused_and_nothing_is_left(
    policy: str, profile: str, said: str, tmp_path: Path, home: Path, user_home: Path
) -> None:
    if works("bwrap") and works("landlock"):
        pytest.skip("no method works here")
    write_policy(home, policy)
    async with Engine(home) as engine:
        (cwd := tmp_path / "project").mkdir()
        with pytest.raises(BadRequest) as caught:
            await engine.open("c1", shell="bash", cwd=str(cwd), sandbox=profile)
        assert said in caught.value.message + caught.value.hint
        assert (await engine.list()).conversations == []


@async_test
async def test_without_a_method_there_is_no_shell(
    tmp_path: Path, home: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_policy(home, '[sandbox.ns]\nmethod = "bwrap"\n')
    monkeypatch.setattr(sandboxing.shutil, "which", lambda name: None)
    monkeypatch.setattr(sandboxing.sandbox, "landlock_abi", lambda: 0)
    async with Engine(home) as engine:
        for profile in ("default", "ns"):
            with pytest.raises(SpawnFailed, match="bwrap is not installed") as caught:
                await engine.open("c1", shell="bash", cwd=str(tmp_path), sandbox=profile)
            assert "bubblewrap" in caught.value.hint
        assert (await engine.list()).conversations == []


@async_test
async def test_landlock_takes_over_where_bwrap_is_not(
    tmp_path: Path, home: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := works("landlock"):
        pytest.skip(why)
    monkeypatch.setattr(sandboxing.shutil, "which", lambda name: None)
    async with sandboxed(home, tmp_path, "", profile="default") as conversation:
        status = await conversation.status()
        assert status.sandbox is not None
        assert status.sandbox["method"] == "landlock"
        assert status.sandbox["not_held"]


@async_test
async def test_a_host_of_an_older_version_makes_no_bare_shell(
    tmp_path: Path, home: Path, user_home: Path
) -> None:
    with pytest.raises(SpawnFailed, match="older version"):
        await sandboxing.prepare("default", home=home, directory=home, cwd=str(tmp_path), host_version="3")


@async_test
async def test_a_planted_link_opens_nothing_at_the_next_start(
    method: str, tmp_path: Path, home: Path, user_home: Path
) -> None:
    (sub := tmp_path / "project" / "sub").mkdir(parents=True)
    for key in ("read_write", "read_only"):
        policy = f'[sandbox.one]\nmethod = "{method}"\n{key} = ["{sub}"]\n'
        async with sandboxed(home, tmp_path, policy) as conversation:
            sub.rmdir()
            sub.symlink_to(user_home / "own")
            with pytest.raises(BadRequest, match="by a link"):
                await conversation.reset()
            sub.unlink()
            sub.mkdir()


@async_test
async def test_nothing_of_it_is_left_when_it_is_deleted(
    method: str, tmp_path: Path, home: Path, user_home: Path
) -> None:
    async with sandboxed(home, tmp_path, f'[sandbox.one]\nmethod = "{method}"\n') as conversation:
        name = f"/tmp/blockpty-{os.getpid()}"
        await conversation.run(f"mkdir -p ${{TMPDIR:-/tmp}}/a/b; mktemp; : > {name}")
        await conversation.close()
        await conversation.delete()
        assert os.listdir(home / "conversations") == []
        assert not os.path.lexists(name)


@async_test
async def test_a_startup_file_that_saves_the_history_says_nothing(
    method: str, tmp_path: Path, home: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with place_outside() as there:
        (there / ".bashrc").write_text("PROMPT_COMMAND='history -a'\nPS1='> '\n")
        monkeypatch.setenv("HOME", str(there))
        async with sandboxed(home, tmp_path, f'[sandbox.one]\nmethod = "{method}"\n') as conversation:
            for number in range(3):
                assert (await conversation.run(f"echo {number}")).output == f"{number}\n"
            shown = (await conversation.read(0, view="text")).data
            assert "history" not in shown
            assert (await conversation.run("rm $__bpty_dir/history")).exit_status == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@async_test
async def test_hidden_input_that_is_not_read_does_not_reach_the_shell(
    shell: str, method: str, tmp_path: Path, home: Path, user_home: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    async with sandboxed(home, tmp_path, f'[sandbox.one]\nmethod = "{method}"\n', shell) as conversation:
        for _again in range(2):
            await conversation.exec_interactive("sh -c 'stty -echo; printf Secret:; until [ -e over ]; do :; done'")
            # On a busy machine the terminal is silent before the question comes, and the wait says that it is hidden.
            while not (await conversation.wait_for("Secret:")).matched:
                pass
            await conversation.send("echo LEAKED\r", author="user")
            (tmp_path / "project" / "over").touch()
            while (await conversation.status()).mode != "idle":
                await conversation.wait_for({"token": "PROMPT"})
            assert (await conversation.run("rm over; echo here")).output == "here\n"
        shown = (await conversation.read(0, view="text")).data
        assert "LEAKED" not in shown
        assert "drain" not in shown
