DROP INDEX runs_by_time;
ALTER TABLE streams DROP COLUMN wall_ms;
ALTER TABLE streams DROP COLUMN cost_micro;
ALTER TABLE streams DROP COLUMN created_at;
