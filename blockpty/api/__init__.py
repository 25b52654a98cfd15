"""Python interface that an engine's and a server's conversations share: contexts, lines, `expect`, bounds of numbers.

Words: docs/reference/glossary.md.
"""
