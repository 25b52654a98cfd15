"""Frozen data that every other room uses: events, blocks, timeline entries, conditions, results. No behaviour.

Words: docs/reference/glossary.md.
"""
