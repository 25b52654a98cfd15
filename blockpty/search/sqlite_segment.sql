-- A segment: its parts, their chunks, where the pieces of these lie, and their posting lists.

CREATE TABLE IF NOT EXISTS parts (
    part INTEGER PRIMARY KEY, pieces INTEGER NOT NULL,
    ts INTEGER NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL, number INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS chunks (
    id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, conversation INTEGER NOT NULL, seq INTEGER NOT NULL,
    number INTEGER NOT NULL, begin INTEGER NOT NULL, size INTEGER NOT NULL, kind INTEGER NOT NULL, cuts BLOB
);
CREATE UNIQUE INDEX IF NOT EXISTS chunks_by_block ON chunks (conversation, seq, number);
CREATE TABLE IF NOT EXISTS places (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS lists (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
