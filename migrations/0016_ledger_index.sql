-- +goose Up
-- An index of our own entries alone looks like the way to one payment's entries while the statistics know of none yet; it is then read
-- whole for each of them. This one cannot be taken for that.
DROP INDEX ledger_entries_book_occurred_at_idx;
CREATE INDEX ledger_entries_occurred_at_idx ON ledger_entries (occurred_at);
