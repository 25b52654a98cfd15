"""Command line `blockpty`, made from the table of operations. It has presentation, but no rules of its own."""
