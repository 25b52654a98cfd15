"""What real shells have printed (see tools/record_stream), and what follows from it."""
