DROP INDEX streams_sealed;
ALTER TABLE streams DROP COLUMN sealed;
DROP TABLE run_keys;
