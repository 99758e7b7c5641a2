-- Most runs succeed and cost nothing here; those that did not are what people look for.
CREATE INDEX runs_unhappy ON streams (status) WHERE status IN ('failed', 'refused', 'canceled');
CREATE INDEX claims_by_stream ON claims (stream);
