-- +goose Up
-- An import of all activity has no payouts in it: they were read from the provider's API, or imported from its list of payouts.
ALTER TABLE reconciliation_runs DROP CONSTRAINT reconciliation_runs_kind_check;
ALTER TABLE reconciliation_runs ADD CONSTRAINT reconciliation_runs_kind_check CHECK (kind IN ('read', 'import', 'payouts', 'match'));

CREATE VIEW provider_payouts_covered AS
SELECT coalesce(range_agg(tstzrange(window_from, window_to)), '{}'::tstzmultirange) AS windows
  FROM (SELECT read_from AS window_from, read_to AS window_to FROM provider_transactions_cursor WHERE read_from < read_to
         UNION ALL
        SELECT from_at, to_at FROM reconciliation_runs WHERE kind IN ('read', 'payouts') AND status = 'complete' AND from_at IS NOT NULL) AS w;
