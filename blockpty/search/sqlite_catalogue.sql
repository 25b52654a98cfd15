-- The catalogue of an index: its segments, conversations and blocks.

CREATE TABLE IF NOT EXISTS about (version TEXT, generation TEXT);
CREATE TABLE IF NOT EXISTS segments (begin INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS conversations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    lines INTEGER NOT NULL, seq INTEGER NOT NULL, settled INTEGER NOT NULL,
    open_seq INTEGER NOT NULL, open_number INTEGER NOT NULL, open_cursor INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS blocks (
    conversation INTEGER NOT NULL, seq INTEGER NOT NULL, ts INTEGER NOT NULL, running INTEGER NOT NULL,
    exit_status INTEGER, duration_ms INTEGER, author TEXT NOT NULL, kind TEXT NOT NULL, cwd TEXT, record BLOB NOT NULL,
    PRIMARY KEY (conversation, seq)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS blocks_by_time ON blocks (ts);

-- What an overview counts, kept up to date by triggers; -1 stands for an unknown exit status.

CREATE TABLE IF NOT EXISTS activity (
    conversation INTEGER PRIMARY KEY, blocks INTEGER NOT NULL, failed INTEGER NOT NULL, last_ts INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS activity_by_time ON activity (last_ts);
CREATE TABLE IF NOT EXISTS statuses (status INTEGER PRIMARY KEY, blocks INTEGER NOT NULL);
CREATE TRIGGER IF NOT EXISTS block_added AFTER INSERT ON blocks WHEN NOT new.running BEGIN
    INSERT INTO statuses VALUES (coalesce(new.exit_status, -1), 1)
        ON CONFLICT (status) DO UPDATE SET blocks = blocks + 1;
    INSERT INTO activity VALUES (new.conversation, 1, coalesce(new.exit_status != 0, 0), new.ts)
        ON CONFLICT (conversation) DO UPDATE SET
            blocks = blocks + 1, failed = failed + excluded.failed, last_ts = max(last_ts, excluded.last_ts);
END;
CREATE TRIGGER IF NOT EXISTS block_removed AFTER DELETE ON blocks WHEN NOT old.running BEGIN
    UPDATE statuses SET blocks = blocks - 1 WHERE status = coalesce(old.exit_status, -1);
    UPDATE activity SET blocks = blocks - 1, failed = failed - coalesce(old.exit_status != 0, 0)
        WHERE conversation = old.conversation;
END;
