CREATE TABLE journal_whole (
    stream bigint NOT NULL,
    class smallint NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    commit_no bigint NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE journal_whole ALTER COLUMN body SET STORAGE EXTERNAL;
INSERT INTO journal_whole SELECT * FROM journal;
DROP TABLE journal;
ALTER TABLE journal_whole RENAME TO journal;
ALTER TABLE journal ADD CONSTRAINT journal_pkey PRIMARY KEY (stream, class, first_seq);

CREATE TABLE audit_whole (
    shard smallint NOT NULL,
    n bigint NOT NULL,
    pos bigint NOT NULL,
    records integer NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL
);
ALTER TABLE audit_whole ALTER COLUMN body SET STORAGE EXTERNAL;
INSERT INTO audit_whole SELECT shard, n, pos, records, at, body FROM audit;
DROP TABLE audit;
ALTER TABLE audit_whole RENAME TO audit;
ALTER TABLE audit ADD CONSTRAINT audit_pkey PRIMARY KEY (shard, n);
CREATE INDEX audit_by_pos ON audit (pos);

DROP FUNCTION drop_month(bigint, bigint);
DROP FUNCTION spent_months(bigint);
DROP FUNCTION make_month(bigint);
DROP FUNCTION make_part(text, text, bigint, bigint, bigint);
DROP FUNCTION month_name(bigint);
DROP FUNCTION month_of(bigint);
