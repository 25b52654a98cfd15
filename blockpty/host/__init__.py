"""PTY host: the processes that own the terminals, record their bytes, and outlive the engines that asked for them.

`client` is the way in for the rest of the program; `keeper` and `recorder` are the two processes behind it.
Words: docs/reference/glossary.md.
"""
