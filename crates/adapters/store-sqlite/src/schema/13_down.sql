DROP INDEX runs_paid;
