"""Surfaces: the operations for programs and people, as a client, over HTTP and MCP, and on the command line.

Words: docs/reference/glossary.md.
"""
