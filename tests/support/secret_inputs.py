"""A program that asks for a secret and draws a star for each key."""

from __future__ import annotations

TYPED = "n3ver-Rec0rded?"
STARS = """
import sys, termios, tty
was = termios.tcgetattr(0)
tty.setraw(0)
print(end=sys.argv[1], flush=True)
length = 0
while sys.stdin.buffer.raw.read(1) != b"\\r":
    length += 1
    print(end=sys.argv[2], flush=True)
termios.tcsetattr(0, termios.TCSANOW, was)
print("\\r\\n%d there" % length)
"""
