"""Processes: what owns the terminals, moves their bytes into the record, and survives whoever asked for them.

`client` is the way in for the rest of the program; `keeper` and `recorder` are the two processes behind it.
"""
