"""The Model Context Protocol: the table of operations as tools, transcripts as resources, and one prompt.

Only this package imports the SDK; nothing here is imported by `import blockpty` or by the command line until it serves.
"""
