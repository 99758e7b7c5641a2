DROP TABLE run_minutes_since;
DROP TABLE run_minutes;
