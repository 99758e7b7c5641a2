-- What sums of costs are made of, for runs: when they were accepted, what they have cost so far
-- (an unsigned number kept in a signed one) and how long they took. All of it stands in the
-- summary, too.
ALTER TABLE streams ADD COLUMN created_at INTEGER;
ALTER TABLE streams ADD COLUMN cost_micro INTEGER;
ALTER TABLE streams ADD COLUMN wall_ms INTEGER;

-- A cost beyond what SQLite's numbers reach is taken from its text, less 2^64, in two parts that
-- never leave their reach.
UPDATE streams SET
    created_at = min(json_extract(summary, '$.created_at'), 9223372036854775807),
    cost_micro = CASE
        WHEN typeof(json_extract(summary, '$.cost_micro')) = 'integer'
            THEN json_extract(summary, '$.cost_micro')
        ELSE (CAST(substr(summary -> '$.cost_micro', 1, length(summary -> '$.cost_micro') - 9)
                   AS INTEGER) - 18446744072) * 1000000000
             + (CAST(substr(summary -> '$.cost_micro', -9) AS INTEGER) - 1709551616)
        END,
    wall_ms = max(0, coalesce(
        json_extract(summary, '$.ended_at') - json_extract(summary, '$.started_at'), 0))
WHERE kind = 'run' AND json_valid(summary);

CREATE INDEX runs_by_time ON streams (created_at) WHERE created_at IS NOT NULL;
