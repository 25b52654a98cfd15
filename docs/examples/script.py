"""A script without asyncio: single commands, and what they raise."""

import blockpty

print(blockpty.run("echo one; echo two", cwd="/").output.split())
print(blockpty.run("exit 3").exit_status)
try:
    blockpty.run("echo 'no rule to make it'; false", check=True)
except blockpty.CommandFailed as problem:
    print(problem.exit_status, problem.output.strip())

# Prints:
# ['one', 'two']
# 3
# 1 no rule to make it
