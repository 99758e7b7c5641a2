-- The table stays: an older Wharf leaves it alone, and nothing else knows where files came from.
DROP INDEX artifacts_by_run;
DROP INDEX artifacts_by_path;
DROP INDEX files_here;
