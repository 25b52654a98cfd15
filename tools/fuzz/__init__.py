"""Random input for everything that reads what it did not write. `python tools/fuzz --help`."""
