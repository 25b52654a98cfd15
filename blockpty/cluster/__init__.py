"""Index, leases and hosts of a catalogue that several machines share in PostgreSQL.

Rules of this room: psycopg is imported here and nowhere else; everything is synchronous and belongs in a thread; no
statement waits longer than its timeout; the time of leases is the server's, never a host's; whatever is in the
database can be thrown away and written again from the streams, except who owns a conversation now.

Words: docs/reference/glossary.md.
"""
