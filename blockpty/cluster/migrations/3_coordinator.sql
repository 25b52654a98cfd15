CREATE TABLE ended (
    conversation text COLLATE "C" NOT NULL,
    seq          integer NOT NULL,
    home         text NOT NULL,
    ts           bigint NOT NULL,
    exit_status  integer,
    record       bytea NOT NULL,
    PRIMARY KEY (conversation, seq)
);
SET LOCAL statement_timeout = 0;
INSERT INTO ended
    SELECT conversation, seq, home, ts, exit_status, record FROM block WHERE NOT running
    ON CONFLICT DO NOTHING;
CREATE INDEX ended_ts ON ended (ts DESC, conversation DESC, seq DESC);
CREATE INDEX ended_failed ON ended (ts DESC, conversation DESC, seq DESC) WHERE exit_status <> 0;
CREATE INDEX ended_home ON ended (home);

ALTER TABLE home ADD COLUMN conversations bigint NOT NULL DEFAULT 0;
UPDATE home SET conversations = found.number
    FROM (SELECT home, count(*) AS number FROM activity GROUP BY home) AS found
    WHERE found.home = home.home;
