"""Conversations that go on while everything around them is killed. `python tools/soak --help`."""
