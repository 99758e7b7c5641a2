-- The journal and the audit lie in partitions by month, so that a month whose runs are all gone is
-- dropped as a whole, and its room is back at once. Whatever has no partition of its own lies in
-- the rest: nothing is ever refused for the lack of one.

-- How many whole months lie between 1970 and a moment, as far as numbers of streams can say.
CREATE FUNCTION month_of(at bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN at >= 10761033600000 THEN 4095 WHEN at < 0 THEN 0 ELSE
        ((extract(year FROM to_timestamp(at / 1000) AT TIME ZONE 'UTC') - 1970) * 12
         + extract(month FROM to_timestamp(at / 1000) AT TIME ZONE 'UTC') - 1)::bigint END
$$;

CREATE FUNCTION month_name(month bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_char(make_date(1970 + (month / 12)::int, (month % 12)::int + 1, 1), 'YYYY_MM')
$$;

ALTER TABLE journal RENAME TO journal_whole;
ALTER TABLE journal_whole RENAME CONSTRAINT journal_pkey TO journal_whole_pkey;
CREATE TABLE journal (
    stream bigint NOT NULL,
    class smallint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    commit_no bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (stream, class, first_seq)
) PARTITION BY RANGE (stream);
ALTER TABLE journal ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE journal_rest (LIKE journal INCLUDING ALL);
ALTER TABLE journal ATTACH PARTITION journal_rest DEFAULT;

ALTER TABLE audit RENAME TO audit_whole;
ALTER TABLE audit_whole RENAME CONSTRAINT audit_pkey TO audit_whole_pkey;
ALTER INDEX audit_by_pos RENAME TO audit_whole_by_pos;
CREATE TABLE audit (
    month smallint NOT NULL,
    shard smallint NOT NULL,
    n bigint NOT NULL,
    pos bigint NOT NULL,
    records integer NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (month, shard, n)
) PARTITION BY RANGE (month);
ALTER TABLE audit ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX audit_by_pos ON audit (pos);
CREATE TABLE audit_rest (LIKE audit INCLUDING ALL);
ALTER TABLE audit ATTACH PARTITION audit_rest DEFAULT;

-- Makes the partition of one table for one month, unless it is there. What the rest holds of that
-- month moves into it. Writers to other partitions go on meanwhile.
CREATE FUNCTION make_part(of_table text, key text, month bigint, from_key bigint, to_key bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    part text := of_table || '_' || month_name(month);
BEGIN
    IF to_regclass(part) IS NOT NULL THEN
        RETURN;
    END IF;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', of_table || '_rest');
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, of_table);
    EXECUTE format(
        'WITH moved AS (DELETE FROM %I WHERE %I >= %s AND %I < %s RETURNING *)
         INSERT INTO %I SELECT * FROM moved',
        of_table || '_rest', key, from_key, key, to_key, part);
    EXECUTE format(
        'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
        of_table, part, from_key, to_key);
END $$;

-- What numbers cannot count to stays in the rest.
CREATE FUNCTION make_month(month bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF month >= 4095 THEN
        RETURN;
    END IF;
    PERFORM make_part('journal', 'stream', month, month << 51, (month + 1) << 51);
    PERFORM make_part('audit', 'month', month, month, month + 1);
END $$;

-- Months before a month whose partition of the journal holds nothing of a run any more, oldest
-- first. Runs, their asks and notices are removed together; worlds, providers, grants and seats stay.
CREATE FUNCTION spent_months(before bigint) RETURNS TABLE (month bigint) LANGUAGE sql STABLE AS $$
    SELECT parts.month FROM (
        SELECT (substr(c.relname, 9, 4)::bigint - 1970) * 12 + substr(c.relname, 14, 2)::bigint - 1
        FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = to_regclass('journal') AND c.relname ~ '^journal_[0-9]{4}_[0-9]{2}$'
    ) AS parts (month)
    WHERE parts.month < before AND NOT EXISTS (
        SELECT FROM generate_series(0, 255) AS every (shard), LATERAL (
            SELECT FROM streams AS s
            WHERE s.shard = every.shard
                AND s.id >= (parts.month << 51) + (every.shard::bigint << 43)
                AND s.id < (parts.month << 51) + ((every.shard::bigint + 1) << 43)
                AND s.kind IN ('run', 'ask', 'notice')
            LIMIT 1) AS found)
    ORDER BY 1
$$;

-- Drops a month's partition of the journal and says how many bytes that gives back. What it still
-- holds moves to the rest, so that nothing is lost whatever it is; if that is much, it stays.
CREATE FUNCTION drop_month(month bigint, rows_max bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    part text := 'journal_' || month_name(month);
    rows_left bigint;
    freed bigint;
BEGIN
    IF to_regclass(part) IS NULL THEN
        RETURN 0;
    END IF;
    LOCK TABLE journal IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('SELECT count(*) FROM (SELECT FROM %I LIMIT %s) AS kept', part, rows_max + 1)
        INTO rows_left;
    IF rows_left > rows_max THEN
        RETURN 0;
    END IF;
    freed := pg_total_relation_size(to_regclass(part));
    EXECUTE format('ALTER TABLE journal DETACH PARTITION %I', part);
    EXECUTE format('INSERT INTO journal SELECT * FROM %I', part);
    EXECUTE format('DROP TABLE %I', part);
    RETURN freed;
END $$;

SELECT make_month(month) FROM (
    SELECT DISTINCT stream >> 51 FROM journal_whole
    UNION SELECT DISTINCT month_of(at) FROM audit_whole) AS there (month);
INSERT INTO journal SELECT * FROM journal_whole;
INSERT INTO audit SELECT month_of(at), shard, n, pos, records, at, body FROM audit_whole;
DROP TABLE journal_whole, audit_whole;
