"""Conversations in asyncio: the pure machine, the files and the host, joined.

Words: docs/reference/glossary.md.
"""
