DROP INDEX runs_unhappy_by_tool;
DROP TABLE run_sums;
