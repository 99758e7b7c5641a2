-- What the attempt of a hold has cost so far, as its provider reports it.
ALTER TABLE holds ADD COLUMN reported INTEGER NOT NULL DEFAULT 0;

-- The most that a definition of a tool has cost, in the order they were met.
CREATE TABLE prices (
    id INTEGER PRIMARY KEY,
    tool TEXT NOT NULL,
    hash TEXT NOT NULL,
    cost INTEGER NOT NULL,
    UNIQUE (tool, hash)
) STRICT;
