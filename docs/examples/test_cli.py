"""Tests of a command-line program that asks questions; `pip install blockpty` gives pytest the fixture."""

import blockpty

PROGRAM = "(read -rp 'Delete 3 files? [y/N] ' yes; [ $yes = y ] || { echo Kept.; exit 1; }; echo Deleted.)"


def test_it_asks_before_it_deletes(terminal_sync):
    program = terminal_sync.exec_interactive(PROGRAM)
    terminal_sync.expect("Delete 3 files? [y/N] ", timeout=10)
    terminal_sync.send("n\r")
    terminal_sync.expect("Kept.")
    terminal_sync.expect(blockpty.PROMPT)
    assert terminal_sync.block(program.block_id).block.exit_status == 1


def test_it_works_in_the_directory_of_the_test(terminal_sync, tmp_path):
    assert terminal_sync.run("pwd", check=True).output == f"{tmp_path}\n"
