//! The statements of a lane.
//!
//! Each is one statement over arrays. Those that could find something else than what was decided on
//! count what they touched and raise an error if it is not as many as they should.

use tokio_postgres::{Client, Statement};

use crate::number::first_position_sql;

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)+) => {
        /// Everything that a lane's connection keeps prepared.
        #[derive(Debug)]
        pub(super) struct Statements {
            $($(#[$doc])* pub(super) $name: Statement,)+
        }

        impl Statements {
            /// Prepares all of them, once for each connection.
            pub(super) async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
                Ok(Self { $($name: client.prepare(&String::from($sql)).await?,)+ })
            }
        }
    };
}

/// Counts what a change touched and compares it with what it should have.
fn counted(change: &str, wanted: &str, what: &str) -> String {
    format!(
        "WITH done AS ({change} RETURNING 1) SELECT expect(count(*), {wanted}, '{what}') FROM done"
    )
}

statements! {
    lane = "WITH done AS (UPDATE lanes SET group_no = $4 WHERE node = $1 AND lane = $2
                AND session = $3 RETURNING 1)
            SELECT pg_current_xact_id()::text::bigint, expect(count(*), 1, 'lane') FROM done";
    lock_shards = "SELECT shard, epoch, commit_no, streams_made, audit_n, audit_mac FROM shards
                   WHERE shard = ANY ($1::smallint[]) ORDER BY shard FOR UPDATE";
    read_streams = "SELECT s.kind, s.key, s.id, s.seq, s.summary, EXISTS
                        (SELECT FROM opens AS o WHERE o.shard = s.shard AND o.kind = s.kind
                         AND o.stream = s.id)
                    FROM unnest($1::smallint[], $2::text[], $3::text[]) AS u (shard, kind, key)
                    JOIN streams AS s USING (shard, kind, key)";
    read_claims = "SELECT scope, key, value FROM claims
                   JOIN unnest($1::text[], $2::text[]) AS u (scope, key) USING (scope, key)";
    read_rows = "SELECT s.kind, s.key, j.first_seq, j.body
                 FROM unnest($1::smallint[], $2::text[], $3::text[]) AS u (shard, kind, key)
                 JOIN streams AS s USING (shard, kind, key)
                 JOIN journal AS j ON j.stream = s.id AND j.class = 0
                 ORDER BY j.stream, j.first_seq DESC";
    lock_holds = "SELECT id, account, amount, reported FROM holds
                  WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE";
    /// Accounts that are named, those of holds, and all above them.
    lock_accounts = "SELECT id, parent, most, held, spent FROM accounts WHERE id IN (
                         WITH RECURSIVE path (id) AS (
                             SELECT unnest($1::text[])
                             UNION SELECT account FROM holds WHERE id = ANY ($2::text[])
                             UNION SELECT a.parent FROM path JOIN accounts AS a USING (id)
                                   WHERE a.parent IS NOT NULL)
                         SELECT id FROM path)
                     ORDER BY id FOR UPDATE";
    lock_files = "SELECT 1 FROM lock_files($1::text[], $2::text[], $3::boolean[])";
    /// Who uses a file is told only where that is asked for.
    read_files = "SELECT u.world, u.path,
                      EXISTS (SELECT FROM artifacts AS a WHERE a.direction = 'out'
                              AND a.gone_at IS NULL AND a.world = u.world AND a.path = u.path),
                      CASE WHEN u.alone THEN
                          ARRAY(SELECT f.run FROM file_uses AS f
                                WHERE f.world = u.world AND f.path = u.path) END
                  FROM unnest($1::text[], $2::text[], $3::boolean[]) AS u (world, path, alone)";
    shards = counted(
        "UPDATE shards AS s SET commit_no = u.commit_no, streams_made = u.made, audit_n = u.n,
             audit_mac = u.mac, audit_sig = u.sig
         FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                     $6::bigint[], $7::bigint[], $8::bytea[], $9::bytea[], $10::bigint[])
             AS u (shard, epoch, was_made, was_n, commit_no, made, n, mac, sig, was_no)
         WHERE s.shard = u.shard AND s.epoch = u.epoch AND s.streams_made = u.was_made
             AND s.audit_n = u.was_n AND s.commit_no = u.was_no",
        "cardinality($1::smallint[])",
        "shards",
    );
    claims = counted(
        "INSERT INTO claims (scope, key, value, stream)
         SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
         ON CONFLICT DO NOTHING",
        "cardinality($1::text[])",
        "claims",
    );
    new_streams = counted(
        &format!(
            "INSERT INTO streams (shard, id, kind, key, seq, pos, world, tool, status, created_at,
                 cost, wall_ms, summary, caller, called_by, parent, correlation, over_hold,
                 error_code, error_text, sealed)
             SELECT u.shard, u.id, u.kind, u.key, u.seq, {} + u.at, u.world, u.tool, u.status,
                 u.created_at, u.cost, u.wall_ms, u.summary, u.caller, u.called_by, u.parent,
                 u.correlation, u.over_hold, u.error_code, u.error_text, u.sealed
             FROM unnest($2::smallint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[],
                 $7::text[], $8::text[], $9::text[], $10::bigint[], $11::numeric[], $12::bigint[],
                 $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::boolean[],
                 $19::text[], $20::text[], $21::text[]) WITH ORDINALITY
                 AS u (shard, id, kind, key, seq, world, tool, status, created_at, cost, wall_ms,
                       summary, caller, called_by, parent, correlation, over_hold, error_code,
                       error_text, sealed, at)
             ON CONFLICT DO NOTHING",
            first_position_sql("$1::bigint")
        ),
        "cardinality($2::smallint[])",
        "new streams",
    );
    /// What a run is and for whom it was made stays as it is.
    streams = counted(
        "UPDATE streams AS s SET seq = u.seq, status = u.status, cost = u.cost,
             wall_ms = u.wall_ms, summary = u.summary, over_hold = u.over_hold,
             error_code = u.error_code, error_text = u.error_text
         FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[],
             $6::numeric[], $7::bigint[], $8::text[], $9::boolean[], $10::text[], $11::text[])
             AS u (shard, id, was_seq, seq, status, cost, wall_ms, summary, over_hold, error_code,
                   error_text)
         WHERE s.shard = u.shard AND s.id = u.id AND s.seq = u.was_seq",
        "cardinality($1::smallint[])",
        "streams",
    );
    /// Nobody is shown the values any more of streams whose run has ended.
    withheld = "UPDATE streams SET withheld = true WHERE sealed = ANY ($1::text[])";
    opened = "INSERT INTO opens (shard, kind, stream)
              SELECT * FROM unnest($1::smallint[], $2::text[], $3::bigint[])
              ON CONFLICT DO NOTHING";
    closed = "DELETE FROM opens AS o
              USING unnest($1::smallint[], $2::text[], $3::bigint[]) AS u (shard, kind, stream)
              WHERE o.shard = u.shard AND o.kind = u.kind AND o.stream = u.stream";
    remarkable = "INSERT INTO remarkable (pos, shard, stream)
                  SELECT s.pos, s.shard, s.id
                  FROM unnest($1::smallint[], $2::bigint[]) AS u (shard, id)
                  JOIN streams AS s USING (shard, id)
                  ON CONFLICT DO NOTHING";
    journal = "INSERT INTO journal (stream, class, first_seq, last_seq, at, commit_no, body)
               SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[],
                                    $5::bigint[], $6::bigint[], $7::bytea[])";
    shortened = counted(
        "UPDATE journal AS j SET body = u.body
         FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS u (stream, first_seq, body)
         WHERE j.stream = u.stream AND j.class = 0 AND j.first_seq = u.first_seq",
        "cardinality($1::bigint[])",
        "rows",
    );
    new_accounts = counted(
        "INSERT INTO accounts (id, parent, most, held, spent)
         SELECT * FROM unnest($1::text[], $2::text[], $3::numeric[], $4::numeric[], $5::numeric[])
         ON CONFLICT DO NOTHING",
        "cardinality($1::text[])",
        "new accounts",
    );
    accounts = counted(
        "UPDATE accounts AS a SET parent = u.parent, most = u.most, held = u.held, spent = u.spent
         FROM unnest($1::text[], $2::text[], $3::numeric[], $4::numeric[], $5::numeric[])
             AS u (id, parent, most, held, spent)
         WHERE a.id = u.id",
        "cardinality($1::text[])",
        "accounts",
    );
    taken_holds = "INSERT INTO holds (id, shard, account, amount, reported)
                   SELECT * FROM unnest($1::text[], $2::smallint[], $3::text[], $4::numeric[],
                                        $5::numeric[])
                   ON CONFLICT (id) DO UPDATE SET shard = excluded.shard,
                       account = excluded.account, amount = excluded.amount,
                       reported = excluded.reported";
    grown_holds = counted(
        "UPDATE holds AS h SET amount = u.amount, reported = u.reported
         FROM unnest($1::text[], $2::numeric[], $3::numeric[]) AS u (id, amount, reported)
         WHERE h.id = u.id",
        "cardinality($1::text[])",
        "holds",
    );
    ended_holds = counted(
        "DELETE FROM holds WHERE id = ANY ($1::text[])",
        "cardinality($1::text[])",
        "ended holds",
    );
    learn = "SELECT learn($1::text[], $2::text[], $3::numeric[], $4)";
    audit = format!(
        "INSERT INTO audit (shard, n, pos, records, at, body, month)
         SELECT u.shard, u.n, {} + u.place, u.records, u.at, u.body, u.month
         FROM unnest($2::smallint[], $3::bigint[], $4::bigint[], $5::integer[], $6::bigint[],
                     $7::bytea[], $8::smallint[]) AS u (shard, n, place, records, at, body, month)",
        first_position_sql("$1::bigint")
    );
    uses = "INSERT INTO file_uses (world, path, run)
            SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
            ON CONFLICT DO NOTHING";
    unused = "DELETE FROM file_uses AS f USING unnest($1::text[], $2::text[]) AS u (world, run)
              WHERE f.world = u.world AND f.run = u.run";
    files = "SELECT keep_files($1, $2::text[], $3::text[], $4::numeric[], $5::text[], $6::text[],
                               $7::text[], $8::text[], $9::text[], $10::bigint[])";
}
