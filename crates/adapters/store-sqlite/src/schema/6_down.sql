DROP INDEX runs_by_caller;
ALTER TABLE streams DROP COLUMN caller;
