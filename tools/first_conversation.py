"""A first conversation in a real shell, step by step, and one to look at; started by tools/up.

Uses only what any program would use: the public names of `blockpty`.
"""

from __future__ import annotations

import asyncio
import sys

import blockpty

TOUR = "tour"
TESTS = """for i in 1 2 3 4 5 6 7 8; do printf 'tests/test_part_%s.py \\e[32m..........\\e[m\\n' $i; done; """
COMMANDS = (
    "ls -l / | head -n 20",
    "for i in $(seq 5 5 100); do printf '\\rbuilding %3d%%' $i; sleep 0.02; done; echo",
    TESTS + "printf '\\e[31mFAILED\\e[m tests/test_login.py::test_redirect\\n'; (exit 1)",
    TESTS + "printf '\\e[32m80 passed\\e[m\\n'",
    "seq 1 2000",
    "printf 'more about it: https://example.org/docs\\n'",
)
QUESTION = "read -r -p 'What is your name? ' name; echo \"Hello, $name.\""


async def converse() -> None:
    # The server of the home, started here if tools/up has not done so.
    async with blockpty.Client() as client:
        await have_tour(client)
        conversation = await client.open(persist=False)
        files = client.home / "conversations" / conversation.conversation_id
        print(f"opened   conversation {conversation.conversation_id} in {files}")
        for command in ("echo hello; seq 3", "cd / && pwd", "false"):
            result = await conversation.run(command, timeout_ms=30_000)
            block = result.block
            print(f"\nblock    {block.block_id}: {command}")
            for line in result.output.splitlines():
                print(f"         | {line}")
            print(f"         exit status {block.exit_status}, bytes {block.span} of the stream")
            print(f"         output in {block.out_path}")

        begin = await conversation.exec_block("for i in 1 2 3; do echo tick $i; done; echo port 8123")
        wait = await conversation.wait_for({"regex": r"port (\d+)"}, from_cursor=begin.cursor, timeout_ms=30_000)
        print(f"\nwait     for the regex 'port (\\d+)' from cursor {begin.cursor}")
        print(f"         {wait.reason}: {wait.match_text!r}, groups {wait.groups}; go on from cursor {wait.cursor}")
        wait = await conversation.wait_for({"token": "PROMPT"}, from_cursor=wait.cursor, timeout_ms=30_000)
        print(f"wait     for the prompt: matched {wait.matched}, {wait.reason}; cursor {wait.cursor}")
        await conversation.close()
        print(f"\nclosed   conversation {conversation.conversation_id}; its files stay")


async def have_tour(client: blockpty.Client) -> None:
    """Have a conversation that shows what the page and `blockpty view` can do; its last program waits for a person."""
    if TOUR in [one.conversation_id for one in (await client.list()).conversations]:
        return
    tour = await client.open(TOUR, shell="bash")
    for command in COMMANDS:
        await tour.run(command, timeout_ms=30_000)
    await tour.exec_block(QUESTION)


def main() -> int:
    try:
        asyncio.run(converse())
    except blockpty.BlockptyError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
