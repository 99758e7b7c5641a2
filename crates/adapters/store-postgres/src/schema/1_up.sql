-- Everything lies in a schema of its own, so that a database may hold other things, too.

-- An assertion inside a transaction whose statements are all on their way already.
CREATE FUNCTION expect(got bigint, wanted bigint, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF got IS DISTINCT FROM wanted THEN
        RAISE EXCEPTION 'expected % of %, found %', wanted, what, got USING ERRCODE = 'WH001';
    END IF;
END $$;

CREATE TABLE settings (key text COLLATE "C" PRIMARY KEY, value text NOT NULL);
-- What is added to positions, which are made of transaction numbers: those begin anew after a dump
-- and a restore, and positions must not.
INSERT INTO settings VALUES ('position_base', '0');

-- Who may write: a core's leases end with its row.
CREATE TABLE cores (
    node text COLLATE "C" PRIMARY KEY,
    expires_at bigint NOT NULL
);

-- Who may write a shard, how many streams were made in it, and how far its commits and its chain of
-- the audit have come; the signature covers shard, n and mac.
CREATE TABLE shards (
    shard smallint PRIMARY KEY,
    owner text COLLATE "C",
    epoch bigint NOT NULL DEFAULT 0,
    commit_no bigint NOT NULL DEFAULT 0,
    streams_made bigint NOT NULL DEFAULT 0,
    audit_n bigint NOT NULL DEFAULT 0,
    audit_mac bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    audit_sig bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex')
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
INSERT INTO shards (shard) SELECT generate_series(0, 255);

-- Takes those leases that are free, expired or already held by the same core.
CREATE FUNCTION acquire(taker text, wanted smallint[], now_ms bigint, until_ms bigint)
RETURNS TABLE (taken smallint, new_epoch bigint, last_commit bigint)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM shards WHERE shard = ANY (wanted) ORDER BY shard FOR UPDATE;
    INSERT INTO cores (node, expires_at) VALUES (taker, until_ms)
        ON CONFLICT (node) DO UPDATE SET expires_at = excluded.expires_at;
    RETURN QUERY UPDATE shards SET owner = taker, epoch = epoch + 1
        WHERE shard = ANY (wanted)
            AND (owner IS NULL OR owner = taker
                 OR NOT EXISTS (SELECT FROM cores WHERE node = owner AND expires_at > now_ms))
        RETURNING shard, epoch, commit_no;
END $$;

-- What tells a lane that lost its connection what became of its last group, and keeps a
-- transaction that comes late from being committed.
CREATE TABLE lanes (
    node text COLLATE "C" NOT NULL,
    lane smallint NOT NULL,
    session bigint NOT NULL,
    group_no bigint NOT NULL,
    PRIMARY KEY (node, lane)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- `id` is made of month, shard and a number counted in the shard; `pos` tells the order in which
-- streams were made. Nothing that changes has an index, so that changes stay on their page.
CREATE TABLE streams (
    shard smallint NOT NULL,
    id bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    pos bigint NOT NULL,
    world text COLLATE "C",
    tool text COLLATE "C",
    status text COLLATE "C",
    created_at bigint,
    cost numeric(20, 0),
    wall_ms bigint,
    summary text COLLATE "C",
    caller text COLLATE "C",
    called_by text COLLATE "C",
    parent text COLLATE "C",
    correlation text COLLATE "C",
    over_hold boolean,
    error_code text COLLATE "C",
    error_text text COLLATE "C",
    -- The run whose end takes the values out of the stream, and whether it has: nobody is shown them
    -- any more then, and they leave the rows of the journal soon after.
    sealed text COLLATE "C",
    withheld boolean NOT NULL DEFAULT false,
    PRIMARY KEY (shard, id),
    UNIQUE (shard, kind, key)
) WITH (fillfactor = 50);
CREATE INDEX streams_by_seal ON streams (sealed) WHERE sealed IS NOT NULL;
CREATE INDEX streams_withheld ON streams (id) WHERE withheld;
CREATE INDEX runs_by_pos ON streams (pos) WHERE kind = 'run';
CREATE INDEX asks_by_pos ON streams (pos) WHERE kind = 'ask';
CREATE INDEX runs_by_time ON streams (created_at) WHERE kind = 'run';
CREATE INDEX runs_by_world ON streams (world, pos) WHERE kind = 'run';
CREATE INDEX runs_by_tool ON streams (tool, pos) WHERE kind = 'run';
CREATE INDEX runs_by_caller ON streams (caller, pos) WHERE caller IS NOT NULL;
CREATE INDEX runs_by_called_by ON streams (called_by, pos) WHERE called_by IS NOT NULL;
CREATE INDEX runs_by_parent ON streams (parent, pos) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_correlation ON streams (correlation, pos) WHERE correlation IS NOT NULL;
CREATE INDEX runs_by_id ON streams (substr(key, strpos(key, '/') + 1)) WHERE kind = 'run';

-- Streams that recovery loads.
CREATE TABLE opens (
    shard smallint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    stream bigint NOT NULL,
    PRIMARY KEY (shard, kind, stream)
);

-- Runs that did not succeed, or cost more than was held: few among all, and what people look for.
CREATE TABLE remarkable (
    pos bigint PRIMARY KEY,
    shard smallint NOT NULL,
    stream bigint NOT NULL
);

-- What one append brought, packed. Class 0 holds entries, class 1 progress.
CREATE TABLE journal (
    stream bigint NOT NULL,
    class smallint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    commit_no bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (stream, class, first_seq)
);
ALTER TABLE journal ALTER COLUMN body SET STORAGE EXTERNAL;

-- Names that are taken, and the stream they were taken for.
CREATE TABLE claims (
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    stream bigint,
    PRIMARY KEY (scope, key)
);
CREATE INDEX claims_by_stream ON claims (stream);

CREATE TABLE accounts (
    id text COLLATE "C" PRIMARY KEY,
    parent text COLLATE "C",
    most numeric(20, 0),
    held numeric(20, 0) NOT NULL,
    spent numeric(20, 0) NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE holds (
    id text COLLATE "C" PRIMARY KEY,
    shard smallint NOT NULL,
    account text COLLATE "C" NOT NULL,
    amount numeric(20, 0) NOT NULL,
    reported numeric(20, 0) NOT NULL
);

-- The most that a definition of a tool has cost, in the order they were met.
CREATE TABLE prices (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tool text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    cost numeric(20, 0) NOT NULL,
    UNIQUE (tool, hash)
);

CREATE FUNCTION learn(tools text[], hashes text[], costs numeric[], most bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. cardinality(tools) LOOP
        CONTINUE WHEN EXISTS (SELECT FROM prices
                              WHERE tool = tools[i] AND hash = hashes[i] AND cost >= costs[i]);
        -- Two who learn at once do it one after the other.
        PERFORM pg_advisory_xact_lock(hashtextextended('wharf prices', 0));
        INSERT INTO prices (tool, hash, cost) VALUES (tools[i], hashes[i], costs[i])
            ON CONFLICT (tool, hash) DO UPDATE SET cost = greatest(prices.cost, excluded.cost);
        DELETE FROM prices WHERE tool = tools[i] AND id NOT IN
            (SELECT id FROM prices WHERE tool = tools[i] ORDER BY id DESC LIMIT most);
    END LOOP;
END $$;

-- One chain per shard. A row packs the records that one group added to it; `pos` is the position of
-- the first of them.
CREATE TABLE audit (
    shard smallint NOT NULL,
    n bigint NOT NULL,
    pos bigint NOT NULL,
    records integer NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (shard, n)
);
ALTER TABLE audit ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX audit_by_pos ON audit (pos);

-- Who wrote and read each file, in the order of commit. A file that was written is there until
-- `gone_at`; while it is, `used_at` tells when it was last written or read.
CREATE TABLE artifacts (
    pos bigint PRIMARY KEY,
    world text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    bytes numeric(20, 0) NOT NULL,
    b3 text COLLATE "C",
    media_type text COLLATE "C" NOT NULL,
    run text COLLATE "C",
    key text COLLATE "C",
    direction text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    gone_at bigint,
    used_at bigint
);
CREATE UNIQUE INDEX files_here ON artifacts (world, path)
    WHERE direction = 'out' AND gone_at IS NULL;
CREATE INDEX artifacts_by_path ON artifacts (world, path, pos);
CREATE INDEX artifacts_by_run ON artifacts (world, run, pos) WHERE run IS NOT NULL;

-- What batches say of files, in order. A record without a direction takes a file away.
CREATE FUNCTION keep_files(base bigint, worlds text[], paths text[], sizes numeric[], hashes text[],
    media_types text[], runs text[], keys text[], directions text[], moments bigint[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first bigint := base + (pg_current_xact_id()::text::bigint << 20);
BEGIN
    FOR i IN 1 .. cardinality(worlds) LOOP
        IF directions[i] = 'in' THEN
            UPDATE artifacts SET used_at = moments[i]
            WHERE direction = 'out' AND gone_at IS NULL AND world = worlds[i] AND path = paths[i]
                AND used_at < moments[i];
        ELSE
            UPDATE artifacts SET gone_at = moments[i]
            WHERE direction = 'out' AND gone_at IS NULL AND world = worlds[i] AND path = paths[i];
        END IF;
        CONTINUE WHEN directions[i] IS NULL;
        INSERT INTO artifacts (pos, world, path, bytes, b3, media_type, run, key, direction, at,
                               used_at)
        VALUES (first + i, worlds[i], paths[i], sizes[i], hashes[i], media_types[i], runs[i],
                keys[i], directions[i], moments[i],
                CASE WHEN directions[i] = 'out' THEN moments[i] END);
    END LOOP;
END $$;

-- What runs have cost that were removed, by the hour they were accepted in. Nobody's name stands
-- for a caller that is not known.
CREATE TABLE purged_costs (
    hour bigint NOT NULL,
    world text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    caller text COLLATE "C" NOT NULL,
    runs bigint NOT NULL,
    failed bigint NOT NULL,
    cost numeric NOT NULL,
    wall_ms numeric NOT NULL,
    PRIMARY KEY (hour, world, tool, caller)
);

-- Removes those of these streams that are not open, with all they hold; says how many.
CREATE FUNCTION purge(in_shards smallint[], kinds text[], keys text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[];
BEGIN
    PERFORM FROM streams AS s
        JOIN unnest(in_shards, kinds, keys) AS u (shard, kind, key) USING (shard, kind, key)
        ORDER BY s.shard, s.id FOR UPDATE OF s;
    SELECT coalesce(array_agg(DISTINCT s.id), '{}') INTO ids FROM streams AS s
        JOIN unnest(in_shards, kinds, keys) AS u (shard, kind, key) USING (shard, kind, key)
        WHERE NOT EXISTS (SELECT FROM opens AS o
                          WHERE o.shard = s.shard AND o.kind = s.kind AND o.stream = s.id);
    INSERT INTO purged_costs
        SELECT created_at / 3600000 * 3600000, world, coalesce(tool, ''), coalesce(called_by, ''),
               count(*), count(*) FILTER (WHERE status = 'failed'), sum(coalesce(cost, 0)),
               sum(coalesce(wall_ms, 0))
        FROM streams WHERE id = ANY (ids) AND shard = ANY (in_shards) AND created_at IS NOT NULL
        GROUP BY 1, 2, 3, 4
        ORDER BY 1, 2, 3, 4
    ON CONFLICT (hour, world, tool, caller) DO UPDATE SET
        runs = purged_costs.runs + excluded.runs, failed = purged_costs.failed + excluded.failed,
        cost = purged_costs.cost + excluded.cost,
        wall_ms = purged_costs.wall_ms + excluded.wall_ms;
    DELETE FROM journal WHERE stream = ANY (ids);
    DELETE FROM claims WHERE stream = ANY (ids);
    DELETE FROM remarkable AS r USING streams AS s
        WHERE s.id = ANY (ids) AND s.shard = ANY (in_shards) AND r.pos = s.pos;
    DELETE FROM streams WHERE id = ANY (ids) AND shard = ANY (in_shards);
    RETURN cardinality(ids);
END $$;
