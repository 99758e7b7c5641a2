-- What runs have cost that were removed, by the hour they were accepted in. Nobody's name stands
-- for a caller that is not known. The halves of each number are kept apart, since SQLite's sums
-- end at 63 bits.
--
-- The table may be there already, since a step down leaves it.
CREATE TABLE IF NOT EXISTS purged_costs (
    hour INTEGER NOT NULL,
    world TEXT NOT NULL,
    tool TEXT NOT NULL,
    caller TEXT NOT NULL,
    runs INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cost_high INTEGER NOT NULL,
    cost_low INTEGER NOT NULL,
    wall_high INTEGER NOT NULL,
    wall_low INTEGER NOT NULL,
    PRIMARY KEY (hour, world, tool, caller)
) STRICT, WITHOUT ROWID;
