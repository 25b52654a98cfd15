"""The files of a conversation: one test file for each module of blockpty.spool, for recovery, schemas and fixtures."""
