"""Spool: the names and formats of a conversation's files, their readers, and the writers of the derived ones.

Words: docs/reference/glossary.md.
"""
