"""Twenty shells side by side, each with its own directory and variables."""

import asyncio

import blockpty


async def work(engine: blockpty.Engine, number: int) -> int:
    async with engine.open(env={"NUMBER": str(number)}) as shell:
        return int((await shell.run("echo $((NUMBER * NUMBER))", check=True)).output)


async def main() -> None:
    async with blockpty.Engine(session_limit=20) as engine:
        print(sum(await asyncio.gather(*(work(engine, number) for number in range(20)))))


asyncio.run(main())

# Prints:
# 2470
