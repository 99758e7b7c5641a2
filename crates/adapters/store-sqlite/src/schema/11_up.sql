-- The same sums as in `run_sums` by the minute, for a day: what is asked for by the minute, and
-- what is left of an hour at the beginning and the end of a time, is read from here. Older minutes
-- go; the one row of the second table says from when on they are all there.
CREATE TABLE run_minutes (
    minute INTEGER NOT NULL,
    world TEXT NOT NULL,
    tool TEXT NOT NULL,
    caller TEXT NOT NULL,
    status TEXT NOT NULL,
    runs INTEGER NOT NULL,
    cost_high INTEGER NOT NULL,
    cost_low INTEGER NOT NULL,
    wall_high INTEGER NOT NULL,
    wall_low INTEGER NOT NULL,
    PRIMARY KEY (minute, world, tool, caller, status)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_minutes_since (since INTEGER NOT NULL) STRICT;

INSERT INTO run_minutes_since
SELECT max(0, coalesce(max(hour), 0) - 86400000) FROM run_sums;

INSERT INTO run_minutes
SELECT created_at / 60000 * 60000, substr(key, 1, instr(key, '/') - 1), coalesce(tool, ''),
       coalesce(called_by, ''), coalesce(status, ''), count(*),
       sum(coalesce(cost_micro, 0) >> 32 & 4294967295), sum(coalesce(cost_micro, 0) & 4294967295),
       sum(coalesce(wall_ms, 0) >> 32 & 4294967295), sum(coalesce(wall_ms, 0) & 4294967295)
FROM streams
WHERE kind = 'run' AND created_at >= (SELECT since FROM run_minutes_since)
GROUP BY 1, 2, 3, 4, 5;
