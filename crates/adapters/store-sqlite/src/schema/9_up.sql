-- How many runs there are, what they have cost and how long they took, by the hour they were
-- accepted in. It is kept with the runs and says the same as they do; runs that are removed leave
-- it. Nobody's name stands for a caller that is not known. The halves of each number are kept
-- apart, since SQLite's sums end at 63 bits.
CREATE TABLE run_sums (
    hour INTEGER NOT NULL,
    world TEXT NOT NULL,
    tool TEXT NOT NULL,
    caller TEXT NOT NULL,
    status TEXT NOT NULL,
    runs INTEGER NOT NULL,
    cost_high INTEGER NOT NULL,
    cost_low INTEGER NOT NULL,
    wall_high INTEGER NOT NULL,
    wall_low INTEGER NOT NULL,
    PRIMARY KEY (hour, world, tool, caller, status)
) STRICT, WITHOUT ROWID;

INSERT INTO run_sums
SELECT created_at / 3600000 * 3600000, substr(key, 1, instr(key, '/') - 1), coalesce(tool, ''),
       coalesce(called_by, ''), coalesce(status, ''), count(*),
       sum(coalesce(cost_micro, 0) >> 32 & 4294967295), sum(coalesce(cost_micro, 0) & 4294967295),
       sum(coalesce(wall_ms, 0) >> 32 & 4294967295), sum(coalesce(wall_ms, 0) & 4294967295)
FROM streams WHERE kind = 'run' AND created_at IS NOT NULL
GROUP BY 1, 2, 3, 4, 5;

-- What went wrong with one tool: the other indices have its good runs, or the bad ones of all.
CREATE INDEX runs_unhappy_by_tool ON streams (tool)
    WHERE status IN ('failed', 'refused', 'canceled');
