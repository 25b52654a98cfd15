"""The pytest plugin, in a pytest of its own: fixtures, reports of failures, snapshots, and what it costs others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.plugin_runs import run_tests

TOP = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.needs("bash")


def test_a_test_has_a_shell_of_its_own(tmp_path: Path) -> None:
    found = run_tests(
        tmp_path,
        """
        import asyncio
        import pytest

        def test_blocking(terminal_sync, tmp_path):
            assert terminal_sync.run("pwd", check=True).output == f"{tmp_path}\\n"
            terminal_sync.exec_interactive("read -r name; echo Hello, $name.")
            terminal_sync.send("Ada\\r")
            terminal_sync.expect("Hello, Ada")

        @pytest.mark.terminal(cols=100, env={"THING": "x"})
        @pytest.mark.terminal(rows=30)
        def test_parameters(terminal_sync):
            screen = terminal_sync.screen()
            assert (screen.cols, screen.rows) == (100, 30)
            assert screen.content.splitlines()[0].rstrip() == "$"
            assert terminal_sync.run("echo $THING; echo $HOME").output.startswith("x\\n")

        def test_a_loop_of_its_own(terminal, terminal_sync):
            async def main():
                assert (await terminal.run("echo one", check=True)).output == "one\\n"
                await terminal.exec_block("echo two; read -r x; echo three")
                seen = []
                async for line in terminal.lines():
                    seen.append(line)
                    if line == "two":
                        await terminal.send("\\r")
                return [line for line in seen if line]
            assert asyncio.run(main()) == ["two", "three"]
            assert asyncio.run(asyncio.wait_for(terminal.expect("three", from_cursor=0), 30)).matched
            assert terminal.id == terminal_sync.id and repr(terminal) == repr(terminal_sync)
            assert "agent_block_end" in [event.type for event in terminal_sync.events(follow=False)]

        def test_cancelled(terminal):
            async def main():
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(terminal.wait_for("never"), 0.1)
                return (await terminal.run("echo on")).output
            assert asyncio.run(main()) == "on\\n"

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.mark.anyio
        async def test_with_a_plugin(terminal):
            with pytest.raises(Exception, match="false"):
                await terminal.run("false", check=True)

        def test_closed(terminal_sync):
            terminal_sync.close()
        """,
        "-p", "anyio.pytest_plugin", "--capture=sys",
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
    assert "6 passed" in found.stdout


def test_a_failure_shows_screen_blocks_and_a_recording(tmp_path: Path) -> None:
    found = run_tests(
        tmp_path,
        """
        def test_fails(terminal_sync):
            terminal_sync.run("seq 1 20; (exit 3)")
            terminal_sync.exec_block("echo asking; read -r x")
            terminal_sync.expect("asking")
            assert 1 == 2

        def test_passes(terminal_sync):
            terminal_sync.run("true")

        def test_without(tmp_path):
            assert 1 == 3
        """,
        "--junitxml", "out.xml",
    )  # fmt: skip
    assert found.returncode == 1
    failed = found.stdout
    for said in (
        "terminal screen", "$ echo asking; read -r x\nasking\n", "terminal blocks",
        "$ seq 1 20; (exit 3)\n    ... 8 lines before\n    9\n", "[b1 ended, exit status 3,", "[b2 running]",
        "terminal recording", "recording.cast",
    ):  # fmt: skip
        assert said in failed, failed
    assert failed.count("terminal screen") == 1
    (properties,) = ElementTree.parse(tmp_path / "out.xml").getroot().iter("property")
    assert properties.get("name") == "terminal_recording"
    head, *lines = Path(properties.get("value") or "").read_text("utf-8").splitlines()
    assert json.loads(head)["version"] == 2 and any("asking" in line for line in lines)


@pytest.mark.parametrize("call", ["expect('never', timeout=0.1)", "run('false', check=True)"])
def test_a_failure_is_shown_at_the_line_of_the_test(call: str, tmp_path: Path) -> None:
    found = run_tests(
        tmp_path,
        f"""
        import asyncio

        def test_blocking(terminal_sync):
            terminal_sync.{call}

        def test_async(terminal):
            async def main():
                await terminal.{call}
            asyncio.run(main())
        """,
    )
    assert found.returncode == 1 and "2 failed" in found.stdout
    assert f">       terminal_sync.{call}\n" in found.stdout and f"await terminal.{call}\n" in found.stdout
    assert "blockpty/" not in found.stdout, found.stdout


SNAPSHOTS = """
    import pytest

    @pytest.mark.parametrize("word", ["a b"])
    def test_kept(terminal_sync, terminal_snapshot, word):
        terminal_snapshot(terminal_sync.run(f"echo {word} WORD; false"))
        terminal_snapshot(terminal_sync.screen(), "screen")
        terminal_snapshot(terminal_sync.read(block_id="b1"), "block")
        terminal_snapshot("text", "text")
"""


def test_snapshots_are_written_and_compared(tmp_path: Path) -> None:
    missing = run_tests(tmp_path, SNAPSHOTS)
    assert missing.returncode == 1 and "write it with --terminal-update" in missing.stdout
    assert not (tmp_path / "__terminal__").exists()
    written = run_tests(tmp_path, SNAPSHOTS, "--terminal-update")
    assert written.returncode == 0, written.stdout
    kept = {path.name: path.read_text("utf-8") for path in (tmp_path / "__terminal__" / "test_it").iterdir()}
    assert kept == {
        "test_kept_a_b.txt": "$ echo a b WORD; false\na b WORD\n[exit status 1]\n",
        "test_kept_a_b_-screen.txt": "$ echo a b WORD; false\na b WORD\n$\n",
        "test_kept_a_b_-block.txt": "a b WORD\n",
        "test_kept_a_b_-text.txt": "text\n",
    }
    assert run_tests(tmp_path, SNAPSHOTS).returncode == 0
    changed = run_tests(tmp_path, SNAPSHOTS.replace("WORD", "OTHER"))
    assert changed.returncode == 1
    assert "-a b WORD\n" in changed.stdout and "+a b OTHER\n" in changed.stdout


def test_loading_it_costs_nothing() -> None:
    program = (
        "import pytest, sys, json; old = set(sys.modules); import blockpty.testing.plugin;"
        "print(json.dumps(sorted(name for name in set(sys.modules) - old)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert set(json.loads(found.stdout)) <= {"blockpty", "blockpty.testing", "blockpty.testing.plugin"}


def test_pytest_finds_it() -> None:
    assert '[project.entry-points.pytest11]\nblockpty = "blockpty.testing.plugin"\n' in (
        TOP / "pyproject.toml"
    ).read_text("utf-8")
