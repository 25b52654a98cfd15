"""Benchmarks of blockpty; run them with `python tools/bench`. docs/benchmarks.md says what is compared and why."""
