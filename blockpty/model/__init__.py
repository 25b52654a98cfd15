"""Frozen data that every other room speaks: events, blocks, timeline entries, conditions, results. No behaviour."""
