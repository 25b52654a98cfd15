"""The pure engine: marks, machine, views, waits."""
