DROP FUNCTION lock_files(text[], text[], boolean[]);
DROP TABLE file_uses;

-- Drops a month's partition of the journal and says how many bytes that gives back. What it still
-- holds moves to the rest, so that nothing is lost whatever it is; if that is much, it stays.
CREATE OR REPLACE FUNCTION drop_month(month bigint, rows_max bigint) RETURNS bigint LANGUAGE plpgsql AS $$
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
