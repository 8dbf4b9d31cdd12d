-- +goose Up
-- The finance desk: what was read and when, what does not match, and what is signed off.

-- The ids that we have put into the provider's objects, as they came back. Anybody may have copied them.
ALTER TABLE provider_transactions
    ADD COLUMN payment_ref uuid,
    ADD COLUMN booking_ref uuid,
    ADD COLUMN refund_ref  uuid;
CREATE INDEX provider_transactions_source_id_idx ON provider_transactions (source_id) WHERE source_id <> '';
CREATE INDEX provider_transactions_payout_idx ON provider_transactions (created_at) WHERE category = 'payout';
CREATE INDEX provider_transactions_payment_ref_idx ON provider_transactions (payment_ref) WHERE payment_ref IS NOT NULL;

-- Where the reading has begun: what is between this and read_to has been listed whole.
ALTER TABLE provider_transactions_cursor ADD COLUMN read_from timestamptz;
UPDATE provider_transactions_cursor
   SET read_from = date_trunc('second', least(read_to, (SELECT min(created_at) FROM payments)));

CREATE TABLE payouts (
    id           text        NOT NULL CONSTRAINT payouts_pkey PRIMARY KEY, -- the provider's
    amount       bigint      NOT NULL, -- minor units
    currency     text        NOT NULL,
    status       text        NOT NULL, -- the provider's word; paid may turn failed within days
    automatic    boolean     NOT NULL, -- only such a one has rows that the provider lists
    arrival_at   timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    rows_read_at timestamptz,          -- when its rows were listed whole
    asked_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX payouts_created_at_idx ON payouts (created_at);

-- What went out with which payout. A payout that has failed gives its money back, which goes out with another.
CREATE TABLE payout_transactions (
    payout_id      text NOT NULL,
    transaction_id text NOT NULL,
    CONSTRAINT payout_transactions_pkey PRIMARY KEY (payout_id, transaction_id)
);
CREATE INDEX payout_transactions_transaction_id_idx ON payout_transactions (transaction_id);

-- One row for each time that somebody read, imported or matched a window.
CREATE TABLE reconciliation_runs (
    id          uuid        NOT NULL CONSTRAINT reconciliation_runs_pkey PRIMARY KEY,
    kind        text        NOT NULL,
    from_at     timestamptz, -- the window [from_at, to_at); none: a file of which nobody has said what it covers
    to_at       timestamptz,
    status      text        NOT NULL DEFAULT 'running',
    reached_at  timestamptz, -- up to where it is done: whoever takes it up goes on from here
    as_of       timestamptz NOT NULL DEFAULT clock_timestamp(),
    rows        bigint      NOT NULL DEFAULT 0,
    pages       bigint      NOT NULL DEFAULT 0,
    file_name   text,
    file_sha256 text,
    why         text,        -- incomplete: what was not read
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    CONSTRAINT reconciliation_runs_kind_check CHECK (kind IN ('read', 'import', 'match')),
    CONSTRAINT reconciliation_runs_status_check CHECK (status IN ('running', 'complete', 'incomplete')),
    CONSTRAINT reconciliation_runs_window_check CHECK ((from_at IS NULL) = (to_at IS NULL) AND (from_at IS NULL OR from_at < to_at)),
    CONSTRAINT reconciliation_runs_finished_check CHECK ((finished_at IS NULL) = (status = 'running'))
);
CREATE INDEX reconciliation_runs_window_idx ON reconciliation_runs (kind, from_at, to_at);

-- What has been listed whole, from whatever source.
CREATE VIEW provider_transactions_covered AS
SELECT coalesce(range_agg(tstzrange(window_from, window_to)), '{}'::tstzmultirange) AS windows
  FROM (SELECT read_from AS window_from, read_to AS window_to FROM provider_transactions_cursor WHERE read_from < read_to
         UNION ALL
        SELECT from_at, to_at FROM reconciliation_runs WHERE kind IN ('read', 'import') AND status = 'complete' AND from_at IS NOT NULL) AS w;

-- What our book says has moved and the provider's transactions do not show. covered: everything between the booking and the entry
-- was listed whole, so that it is missing; otherwise nobody can tell yet.
CREATE VIEW finance_unmet AS
SELECT u.kind, u.about, u.payment_id, u.booking_id, u.amount, u.currency, u.occurred_at, u.accepted,
       c.windows @> tstzrange(date_trunc('second', u.created_at), u.occurred_at, '[]') AS covered
  FROM (SELECT e.kind, e.about, e.payment_id, p.booking_id, e.amount, e.currency, e.occurred_at, p.created_at, false AS accepted
          FROM ledger_entries e JOIN payments p ON p.id = e.payment_id
         WHERE e.origin = 'book' AND e.kind = 'charge'
           AND NOT EXISTS (SELECT FROM provider_transactions t WHERE t.intent_id = p.provider_intent_id AND t.intent_id <> '' AND t.category = 'charge')
           AND NOT EXISTS (SELECT FROM ledger_entries o WHERE o.origin = 'book' AND o.about = e.about AND o.id < e.id)
         UNION ALL
        SELECT e.kind, e.about, e.payment_id, p.booking_id, r.amount, r.currency, e.occurred_at, p.created_at, r.status = 'pending'
          FROM ledger_entries e JOIN payments p ON p.id = e.payment_id JOIN refunds r ON r.id = CASE WHEN e.kind = 'refund' THEN e.about::uuid END
         WHERE e.origin = 'book' AND e.kind = 'refund' AND r.status <> 'failed' AND r.provider_refund_id IS NOT NULL
           AND NOT EXISTS (SELECT FROM provider_transactions t WHERE t.source_id = r.provider_refund_id AND t.source_id <> '')
           AND NOT EXISTS (SELECT FROM ledger_entries o WHERE o.origin = 'book' AND o.about = e.about AND o.id > e.id)
         UNION ALL
        SELECT e.kind, e.about, e.payment_id, p.booking_id, d.amount, d.currency, e.occurred_at, p.created_at, false
          FROM ledger_entries e JOIN payments p ON p.id = e.payment_id JOIN disputes d ON d.id = e.about
         WHERE e.origin = 'book' AND e.kind = 'dispute' AND d.withdrawn
           AND NOT EXISTS (SELECT FROM provider_transactions t WHERE t.source_id = d.id AND t.source_id <> '')
           AND NOT EXISTS (SELECT FROM ledger_entries o WHERE o.origin = 'book' AND o.about = e.about AND o.id > e.id)
       ) AS u
 CROSS JOIN provider_transactions_covered c;

CREATE TABLE finance_periods (
    id            uuid        NOT NULL CONSTRAINT finance_periods_pkey PRIMARY KEY,
    zone          text        NOT NULL,
    from_at       timestamptz NOT NULL,
    to_at         timestamptz NOT NULL,
    totals        jsonb       NOT NULL, -- by category and currency, and the balances at both ends, as they were signed
    signed_off_by text        NOT NULL,
    reason        text        NOT NULL,
    signed_off_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT finance_periods_window_excl EXCLUDE USING gist (tstzrange(from_at, to_at) WITH &&)
);

-- What does not match. A row is closed by the run that finds it explained, or signed off by a person.
CREATE TABLE reconciliation_items (
    id              bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT reconciliation_items_pkey PRIMARY KEY,
    kind            text        NOT NULL,
    about           text        NOT NULL, -- the transaction, payment, refund, dispute, payout, event or period
    booking_id      uuid,
    amount          bigint,               -- minor units
    currency        text,
    occurred_at     timestamptz NOT NULL, -- decides which period it belongs to
    why             text        NOT NULL,
    owner           text        NOT NULL,
    note            text        NOT NULL DEFAULT '',
    status          text        NOT NULL DEFAULT 'open',
    period_id       uuid        CONSTRAINT reconciliation_items_period_id_fkey REFERENCES finance_periods, -- found after that was signed off
    run_id          uuid        NOT NULL CONSTRAINT reconciliation_items_run_id_fkey REFERENCES reconciliation_runs,
    opened_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    closed_by_run   uuid        CONSTRAINT reconciliation_items_closed_by_run_fkey REFERENCES reconciliation_runs,
    signed_off_by   text,
    sign_off_reason text,
    ended_at        timestamptz,
    CONSTRAINT reconciliation_items_kind_check CHECK (kind IN ('charged_without_booking', 'confirmed_without_charge', 'two_charges',
        'amount_differs', 'refund_without_cause', 'refund_missing', 'fee_differs', 'dispute_unknown', 'payout_differs',
        'event_unpublished', 'late', 'unexplained', 'period_changed')),
    CONSTRAINT reconciliation_items_status_check CHECK (status IN ('open', 'closed', 'signed_off')),
    CONSTRAINT reconciliation_items_ended_check CHECK ((ended_at IS NULL) = (status = 'open')),
    CONSTRAINT reconciliation_items_closed_check CHECK ((closed_by_run IS NOT NULL) = (status = 'closed')),
    CONSTRAINT reconciliation_items_signed_check CHECK ((signed_off_by IS NOT NULL AND sign_off_reason IS NOT NULL) = (status = 'signed_off'))
);
CREATE UNIQUE INDEX reconciliation_items_open_key ON reconciliation_items (kind, about) WHERE status = 'open';
CREATE INDEX reconciliation_items_occurred_at_idx ON reconciliation_items (occurred_at);
CREATE INDEX reconciliation_items_about_idx ON reconciliation_items (about);

-- What the provider has agreed to take. A currency and category without one is not checked, and the report says so.
CREATE TABLE fee_schedules (
    currency     text        NOT NULL, -- the settlement's
    category     text        NOT NULL, -- the provider's reporting category
    from_at      timestamptz NOT NULL,
    basis_points bigint      NOT NULL, -- hundredths of a per cent
    fixed        bigint      NOT NULL, -- minor units
    step         bigint      NOT NULL DEFAULT 1, -- a fee is cut to a multiple of it
    CONSTRAINT fee_schedules_pkey PRIMARY KEY (currency, category, from_at),
    CONSTRAINT fee_schedules_check CHECK (basis_points >= 0 AND fixed >= 0 AND step > 0)
);

-- How many pages may be read from the provider, by all processes together: paging must leave its limits to charges and fences.
CREATE TABLE provider_read_budget (
    only_row    boolean          NOT NULL DEFAULT true CONSTRAINT provider_read_budget_pkey PRIMARY KEY,
    tokens      double precision NOT NULL,
    refilled_at timestamptz      NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT provider_read_budget_only_row_check CHECK (only_row)
);
