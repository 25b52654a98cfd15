"""Time-outs: a result or an error, as you like it; the program keeps running until you end it."""

import blockpty

with blockpty.sync.Engine() as engine, engine.open() as shell:
    result = shell.run("echo begun; sleep 1000", timeout=0.2)
    print(result.timed_out, result.output.split())
    try:
        shell.expect("finished", timeout=0.1)
    except blockpty.Timeout as problem:
        print(problem.message)
    print(shell.interrupt().how)

# Prints:
# True ['begun']
# 'finished' did not come in time
# SIGINT
