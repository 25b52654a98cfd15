"""Hostile set-ups: startup files that break naive integrations, and what is left of the block list under each."""
