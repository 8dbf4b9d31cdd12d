-- +goose Up
-- A comparison is shown again for a while: with what it could not check.
ALTER TABLE reconciliation_runs ADD COLUMN unchecked text;
-- Up to where the books were compared, for whoever compares next and for the alarm.
CREATE INDEX reconciliation_runs_matched_idx ON reconciliation_runs (to_at) WHERE kind = 'match' AND status = 'complete';
