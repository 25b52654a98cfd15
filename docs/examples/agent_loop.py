"""An agent's loop: a model chooses a command, reads what it printed, and chooses the next. Here it is a list."""

import asyncio

import blockpty

model = iter(["mkdir -p src", "echo 'todo: test' > src/notes", "grep -rc todo src", "cat src/none", None])


async def main() -> None:
    async with blockpty.Engine() as engine, engine.open() as shell:
        while (command := next(model)) is not None:
            result = await shell.run(command, timeout=60, max_bytes=8192)
            print(f"$ {command}\n{result.output}[{result.exit_status}]")


asyncio.run(main())

# Prints:
# $ mkdir -p src
# [0]
# $ echo 'todo: test' > src/notes
# [0]
# $ grep -rc todo src
# src/notes:1
# [0]
# $ cat src/none
# cat: src/none: No such file or directory
# [1]
