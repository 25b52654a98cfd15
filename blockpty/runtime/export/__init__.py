"""Exports: a conversation, a block or a span as a file that other tools open."""
