-- Who wrote and read each file, in the order of commit. `run` and `key` name the run and its
-- output or input; nobody's run is a file that somebody put there. `bytes` is an unsigned number
-- kept in a signed one. A file that was written is there until `gone_at`; while it is, `used_at`
-- tells when it was last written or read.
--
-- The table may be there already, since a step down leaves it.
CREATE TABLE IF NOT EXISTS artifacts (
    id INTEGER PRIMARY KEY,
    world TEXT NOT NULL,
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    b3 TEXT,
    media_type TEXT NOT NULL,
    run TEXT,
    key TEXT,
    direction TEXT NOT NULL,
    at INTEGER NOT NULL,
    gone_at INTEGER,
    used_at INTEGER
) STRICT;

-- The files that are there now. It has all that sums are made of, and the columns of its own
-- condition, since SQLite looks at the rows otherwise.
CREATE INDEX files_here ON artifacts (world, path, bytes, direction, gone_at)
    WHERE direction = 'out' AND gone_at IS NULL;
CREATE INDEX artifacts_by_path ON artifacts (world, path);
CREATE INDEX artifacts_by_run ON artifacts (world, run) WHERE run IS NOT NULL;
