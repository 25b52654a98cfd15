"""Redaction of secrets: one test file for each module of blockpty.redact, and the examples they share."""
