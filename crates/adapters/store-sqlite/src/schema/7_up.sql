-- What lists of runs are narrowed by: who called for a run, the run that started it, what it is
-- part of, and whether it cost more than was held. All of it stands in the summary, too.
ALTER TABLE streams ADD COLUMN called_by TEXT;
ALTER TABLE streams ADD COLUMN parent TEXT;
ALTER TABLE streams ADD COLUMN correlation TEXT;
ALTER TABLE streams ADD COLUMN over_hold INTEGER;
UPDATE streams SET
    called_by = json_extract(summary, '$.caller'),
    parent = json_extract(summary, '$.parent.world') || '/' || json_extract(summary, '$.parent.run'),
    correlation = json_extract(summary, '$.correlation_id'),
    over_hold = json_extract(summary, '$.over_hold')
WHERE kind = 'run' AND json_valid(summary);

CREATE INDEX runs_by_called_by ON streams (called_by) WHERE called_by IS NOT NULL;
CREATE INDEX runs_by_parent ON streams (parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_by_correlation ON streams (correlation) WHERE correlation IS NOT NULL;
CREATE INDEX runs_by_tool ON streams (tool) WHERE tool IS NOT NULL;
CREATE INDEX runs_by_world ON streams (substr(key, 1, instr(key, '/') - 1)) WHERE kind = 'run';
CREATE INDEX runs_by_id ON streams (substr(key, instr(key, '/') + 1)) WHERE kind = 'run';
-- In the order they were made, whatever the status: `runs_unhappy` has one after the other.
CREATE INDEX runs_not_succeeded ON streams (kind) WHERE status <> 'succeeded';
CREATE INDEX runs_over_hold ON streams (over_hold) WHERE over_hold = 1;
-- Asks that were decided.
CREATE INDEX asks_decided ON streams (kind) WHERE kind = 'ask' AND open = 0;
