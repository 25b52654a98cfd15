"""The pure machine: bytes and timeline entries in, events out. No clock, no file, no task; any input is legal."""
