-- The columns of a table of chunks. `raw` is what a match is verified against by hosts that do not have the stream.
-- `folded` and `words` went with step 2; the first came again with step 4.
    conversation text COLLATE "C" NOT NULL,
    seq          integer NOT NULL,
    ts           bigint NOT NULL,
    number       integer NOT NULL,
    begins       bigint NOT NULL,
    own          integer NOT NULL,
    folded       text COLLATE "C" NOT NULL,
    words        tsvector NOT NULL,
    raw          bytea NOT NULL
