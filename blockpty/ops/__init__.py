"""The table of operations, their parameters and results, and the dispatcher that calls them.

Words: docs/reference/glossary.md.
"""
