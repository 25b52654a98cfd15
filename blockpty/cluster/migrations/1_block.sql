-- The columns of a table of blocks.
    conversation text COLLATE "C" NOT NULL,
    seq          integer NOT NULL,
    ts           bigint NOT NULL,
    home         text NOT NULL,
    cwd          text,
    exit_status  integer,
    duration_ms  bigint,
    author       text NOT NULL,
    kind         text NOT NULL,
    record       bytea NOT NULL
