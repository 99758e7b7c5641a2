-- The grant of the client that called for a run, for runs of clients that list them by it. It
-- stands in the summary, too.
ALTER TABLE streams ADD COLUMN caller TEXT;
UPDATE streams SET caller = json_extract(summary, '$.grant')
WHERE kind = 'run' AND json_valid(summary);

CREATE INDEX runs_by_caller ON streams (caller) WHERE caller IS NOT NULL;
