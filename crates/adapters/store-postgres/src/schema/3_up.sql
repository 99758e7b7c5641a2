-- The files that open runs use, which nobody may remove until the runs are over.
CREATE TABLE file_uses (
    world text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    run text COLLATE "C" NOT NULL,
    PRIMARY KEY (world, path, run)
);
CREATE INDEX file_uses_by_run ON file_uses (world, run);

-- Waits until nobody else who is about to use or remove one of these files is at it. Users of a
-- file do not wait for each other. The files come in order, so that nobody waits in a circle.
CREATE FUNCTION lock_files(worlds text[], paths text[], alone boolean[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    file bigint;
BEGIN
    FOR i IN 1 .. cardinality(worlds) LOOP
        file := hashtextextended('wharf file ' || worlds[i] || paths[i], 0);
        IF alone[i] THEN
            PERFORM pg_advisory_xact_lock(file);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(file);
        END IF;
    END LOOP;
END $$;

-- Drops a month's partition of the journal and says how many bytes that gives back. What it still
-- holds moves to the rest, so that nothing is lost whatever it is; if that is much, it stays, and
-- nobody is kept waiting for it.
CREATE OR REPLACE FUNCTION drop_month(month bigint, rows_max bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    part text := 'journal_' || month_name(month);
    rows_left bigint;
    freed bigint;
BEGIN
    IF to_regclass(part) IS NULL THEN
        RETURN 0;
    END IF;
    FOR look IN 1 .. 2 LOOP
        EXECUTE format('SELECT count(*) FROM (SELECT FROM %I LIMIT %s) AS kept', part,
                       rows_max + 1)
            INTO rows_left;
        IF rows_left > rows_max THEN
            RETURN 0;
        END IF;
        -- The second look is at what nobody adds to any more.
        LOCK TABLE journal IN ACCESS EXCLUSIVE MODE;
    END LOOP;
    freed := pg_total_relation_size(to_regclass(part));
    EXECUTE format('ALTER TABLE journal DETACH PARTITION %I', part);
    EXECUTE format('INSERT INTO journal SELECT * FROM %I', part);
    EXECUTE format('DROP TABLE %I', part);
    RETURN freed;
END $$;
