"""Files on disk: safe open, segment names, checksummed lines, fsync, quarantine and holes.

`host` writes with it and `spool` reads and derives with it. It uses only the standard library. A module here knows one
file, and neither a record nor an error of the package: what goes wrong is an OSError.
Words: docs/reference/glossary.md.
"""
