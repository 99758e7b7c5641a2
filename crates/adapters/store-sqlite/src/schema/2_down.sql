DROP INDEX claims_by_stream;
DROP INDEX runs_unhappy;
