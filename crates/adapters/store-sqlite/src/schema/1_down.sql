DROP TABLE IF EXISTS artifacts;
DROP TABLE heads;
DROP TABLE leases;
DROP TABLE audit;
DROP TABLE holds;
DROP TABLE accounts;
DROP TABLE claims;
DROP TABLE journal;
DROP TABLE streams;
