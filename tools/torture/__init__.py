"""Kills and damage, very often, with the numbers of what was lost. Run `python tools/torture`."""
