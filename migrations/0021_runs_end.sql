-- +goose Up
-- A bulk run comes to an end: an effect on which the act has failed often enough is given up, and a person may end the run.

ALTER TABLE operator_run_items
    ADD COLUMN tries  int NOT NULL DEFAULT 0, -- that failed: neither accepted nor refused
    ADD COLUMN try_at timestamptz,            -- not again before
    DROP CONSTRAINT operator_run_items_status_check,
    ADD CONSTRAINT operator_run_items_status_check CHECK (status IN ('waiting', 'done', 'refused', 'failed', 'left_out'));
DROP INDEX operator_run_items_refused_idx;
CREATE INDEX operator_run_items_not_done_idx ON operator_run_items (run_id, status) WHERE status IN ('refused', 'failed', 'left_out');

ALTER TABLE operator_runs
    ADD COLUMN ended_by     text, -- a person, before all was done
    ADD COLUMN ended_reason text,
    ADD CONSTRAINT operator_runs_ended_check CHECK ((ended_by IS NULL) = (ended_reason IS NULL));
