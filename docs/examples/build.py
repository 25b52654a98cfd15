"""A long build with its progress: each line, and each update of a progress bar, as it comes."""

import re

import blockpty

BUILD = "for i in 25 50 75; do printf '[%s%%] compiling\\r' $i; sleep 0.01; done; echo; echo 'app.c:7: warning: unused'"

with blockpty.sync.Engine() as engine, engine.open() as shell:
    build = shell.exec_block(BUILD)
    for line in shell.lines(build.block_id):
        if found := re.match(r"\[(\d+)%\]", line):
            print(f"{found[1]} %")
        elif "warning" in line:
            print(line)
    print("exit status", shell.block(build.block_id).block.exit_status)

# Prints:
# 25 %
# 50 %
# 75 %
# app.c:7: warning: unused
# exit status 0
