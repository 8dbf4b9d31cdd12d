-- +goose Up
-- The days (UTC) into which something was entered that no comparison has seen since, for whoever compares by itself: first_at and last_at are
-- of what was entered, or of what it has a bearing on.
CREATE TABLE finance_days_entered (
    day       timestamptz NOT NULL CONSTRAINT finance_days_entered_pkey PRIMARY KEY,
    first_at  timestamptz NOT NULL,
    last_at   timestamptz NOT NULL,
    marked_in xid8        NOT NULL DEFAULT pg_current_xact_id()
);

-- What was looked at for them: one row.
CREATE TABLE finance_days_looked (
    only_row boolean     NOT NULL DEFAULT true CONSTRAINT finance_days_looked_pkey PRIMARY KEY,
    snapshot pg_snapshot NOT NULL,
    CONSTRAINT finance_days_looked_only_row_check CHECK (only_row)
);
INSERT INTO finance_days_looked (snapshot) VALUES (pg_current_snapshot());
