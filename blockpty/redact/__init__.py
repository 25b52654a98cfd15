"""Redaction of secrets: their shapes as data, candidates, spans, and the redacted text. Pure.

Words: docs/reference/glossary.md.
"""
