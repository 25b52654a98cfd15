CREATE TABLE activity (
    conversation text COLLATE "C" PRIMARY KEY,
    home         text NOT NULL,
    blocks       integer NOT NULL,
    failed       integer NOT NULL,
    last_ts      bigint NOT NULL,
    last_seq     integer NOT NULL,
    statuses     jsonb NOT NULL,
    record       bytea NOT NULL
);
CREATE INDEX activity_last_ts ON activity (last_ts DESC);
CREATE INDEX activity_home ON activity (home);

CREATE TABLE status (
    home   text NOT NULL,
    status integer NOT NULL,
    blocks bigint NOT NULL,
    PRIMARY KEY (home, status)
);
