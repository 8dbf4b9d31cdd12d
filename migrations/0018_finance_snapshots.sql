-- +goose Up
-- What a comparison has seen is told by transactions, not by clocks: a row may be written before a comparison begins and be committed after
-- it. Rows without a transaction were there before this migration, and every comparison that has a snapshot has seen them.
ALTER TABLE ledger_entries ADD COLUMN entered_in xid8;
ALTER TABLE ledger_entries ALTER COLUMN entered_in SET DEFAULT pg_current_xact_id();
CREATE INDEX ledger_entries_entered_in_idx ON ledger_entries (entered_in);

ALTER TABLE payouts ADD COLUMN changed_in xid8; -- its status, or what is known to have gone out with it
ALTER TABLE payouts ALTER COLUMN changed_in SET DEFAULT pg_current_xact_id();
CREATE INDEX payouts_changed_in_idx ON payouts (changed_in);

-- As of when a run was begun: whatever that shows, all of its statements have seen.
ALTER TABLE reconciliation_runs ADD COLUMN snapshot pg_snapshot;
ALTER TABLE reconciliation_runs ALTER COLUMN snapshot SET DEFAULT pg_current_snapshot();

-- Whether a row that is there now was not in a snapshot. A transaction that is still to come has come from a dump of another cluster, whose
-- rows were there before all that this one does. The first condition is for the index.
-- +goose StatementBegin
CREATE FUNCTION entered_since(entered xid8, seen pg_snapshot) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT entered >= pg_snapshot_xmin(seen) AND NOT pg_visible_in_snapshot(entered, seen) AND entered < pg_snapshot_xmax(pg_current_snapshot())
$$;
-- +goose StatementEnd
