"""Search of everything that was shown: a query, an exact scan, and indexes that make the scan short.

Words: docs/reference/glossary.md.
"""
