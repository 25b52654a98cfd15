"""The terminal program `blockpty view`: conversations, their blocks and the live screen, over a client of the server.

What a program wrote reaches the terminal as text and colours only: `strips` is the one place where it becomes what
Textual writes.
"""
