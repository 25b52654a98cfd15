"""The tests mirror the package; what several of them share lives here and is imported as `tests.<name>`."""
