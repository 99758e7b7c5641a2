-- One key for each open run whose values are not kept: what is written of it is encrypted with
-- that key until the run has ended. All rows are of one size and none is ever removed, so that a
-- key is overwritten where it lies. A key of zeros is free.
CREATE TABLE run_keys (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL
) STRICT;

-- The key that a stream's rows are encrypted with.
ALTER TABLE streams ADD COLUMN sealed INTEGER;
CREATE INDEX streams_sealed ON streams (sealed) WHERE sealed IS NOT NULL;
