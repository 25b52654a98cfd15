"""The ground floor of files: one test file for each module of blockpty.files."""
