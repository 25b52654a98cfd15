"""What conversations of an engine and of a server share in Python: contexts, lines, `expect`, bounds of numbers.

Words: docs/reference/glossary.md.
"""
