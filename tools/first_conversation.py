"""A first conversation in a real shell, told step by step; started by tools/up.

Uses only what any program would use: the public names of `blockpty`.
"""

from __future__ import annotations

import asyncio
import sys

import blockpty


async def converse() -> None:
    # The server of the home, started here if tools/up has not done so.
    async with blockpty.Client() as client:
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


def main() -> int:
    try:
        asyncio.run(converse())
    except blockpty.BlockptyError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
