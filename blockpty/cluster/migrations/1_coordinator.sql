CREATE TABLE lease (
    conversation text PRIMARY KEY,
    owner        text NOT NULL,
    address      text NOT NULL,
    epoch        bigint NOT NULL,
    expires      timestamptz NOT NULL
);

CREATE TABLE home (
    home       text PRIMARY KEY,
    address    text NOT NULL,
    generation text NOT NULL
);

CREATE TABLE conversation (
    conversation text COLLATE "C" PRIMARY KEY,
    home         text NOT NULL,
    lines        bigint,
    seq          integer,
    settled      bigint,
    open_seq     integer,
    open_number  integer,
    open_cursor  bigint
);
CREATE INDEX conversation_home ON conversation (home);
