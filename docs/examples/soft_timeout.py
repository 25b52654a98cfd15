"""A soft time-out: when a command takes long, the agent is asked whether to wait on, to answer or to interrupt."""

import asyncio

import blockpty

model = iter(["", "", "^C"])  # wait on, wait on, give up


async def main() -> None:
    async with blockpty.Engine() as engine, engine.open() as shell:
        result = await shell.run("echo started; sleep 600", timeout=1)
        print(result.output, result.reason)
        while result.reason == "timeout":
            keys, until = next(model), [blockpty.PROMPT, blockpty.INPUT]
            result = await (shell.send_keys(keys, match=until) if keys else shell.wait_for(until, timeout=0.5))
            print(repr(keys), result.reason)
        print((await shell.blocks()).blocks[-1].state, (await shell.run("echo next")).output, end="")


asyncio.run(main())

# Prints:
# started
#  timeout
# '' timeout
# '' timeout
# '^C' prompt
# interrupted next
