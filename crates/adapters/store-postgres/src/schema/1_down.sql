DROP TABLE settings, cores, shards, lanes, streams, opens, remarkable, journal, claims, accounts,
    holds, prices, audit, artifacts, purged_costs;
DROP FUNCTION expect(bigint, bigint, text);
DROP FUNCTION learn(text[], text[], numeric[], bigint);
DROP FUNCTION keep_files(bigint, text[], text[], numeric[], text[], text[], text[], text[], text[],
    bigint[]);
DROP FUNCTION purge(smallint[], text[], text[]);
DROP FUNCTION acquire(text, smallint[], bigint, bigint);
