"""Tricky situations of a terminal, each played in every supported shell through the public API."""
