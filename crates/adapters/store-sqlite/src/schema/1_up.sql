-- Streams in the order they were made. `key` is unique among those of a kind. `tool`, `status`
-- and `summary` are there for runs.
CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    shard INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    seq INTEGER NOT NULL,
    open INTEGER NOT NULL,
    status TEXT,
    tool TEXT,
    summary TEXT
) STRICT;
CREATE UNIQUE INDEX streams_by_key ON streams (kind, key);
CREATE INDEX streams_open ON streams (kind) WHERE open = 1;

-- What one append brought, packed. `id` is made of stream, class and first sequence number.
CREATE TABLE journal (
    id INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    commit_no INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- Names that are taken, and the stream they were taken for.
CREATE TABLE claims (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    stream INTEGER,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

-- Amounts are unsigned 64-bit numbers kept in SQLite's signed ones.
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    parent TEXT,
    max INTEGER,
    held INTEGER NOT NULL,
    spent INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE holds (
    id TEXT PRIMARY KEY,
    shard INTEGER NOT NULL,
    account TEXT NOT NULL,
    amount INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One chain per shard, all in the order of commit.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    shard INTEGER NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    mac BLOB NOT NULL,
    record TEXT NOT NULL
) STRICT;

-- Who may write a shard. Kept apart from the heads, which change with every commit and should
-- lie on few pages.
CREATE TABLE leases (
    shard INTEGER PRIMARY KEY,
    node TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

-- How far a shard's commits and its chain have come; the signature covers shard, n and mac.
CREATE TABLE heads (
    shard INTEGER PRIMARY KEY,
    commit_no INTEGER NOT NULL,
    audit_n INTEGER NOT NULL,
    audit_mac BLOB NOT NULL,
    audit_sig BLOB NOT NULL
) STRICT;
