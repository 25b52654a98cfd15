"""The command `blockpty`: the table of operations as a command line. It has presentation, but no rules of its own."""
