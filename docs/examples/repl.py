"""A REPL: start it, wait for its prompt, send a line, and read what it answers."""

import blockpty

with blockpty.sync.Engine() as engine, engine.open() as shell:
    shell.exec_interactive("python3 -q", cwd="/")
    for line in ("from math import tau", "round(tau, 3)", "1 / 0"):
        shell.expect(blockpty.Regex(r">>> $"), timeout=30)
        shell.send(f"{line}\r")
    print(shell.expect(blockpty.Regex(r"\d+\.\d+$"), from_cursor=0).match_text)
    print(shell.expect(blockpty.Regex(r"^(\w+Error): (.*)$")).groups)
    shell.end_session()

# Prints:
# 6.283
# {'1': 'ZeroDivisionError', '2': 'division by zero'}
