"""The pure machine: bytes and timeline entries in, events and signals out, for any input and without a clock or a file.

Words: docs/reference/glossary.md.
"""
