"""Properties that hold for every record."""
