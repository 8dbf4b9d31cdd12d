-- +goose Up
-- Our own book: what has moved, in double entry. One row debits one account and credits another with the same amount in the same
-- currency, so that the book is balanced per currency by its shape; no row can say anything else. Rows are only ever added: what
-- was wrong is put right by another row.

CREATE TABLE ledger_entries (
    id                 bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT ledger_entries_pkey PRIMARY KEY,
    origin             text        NOT NULL, -- book: our own rows say so; provider: a transaction of theirs does
    kind               text        NOT NULL,
    debit              text        NOT NULL,
    credit             text        NOT NULL,
    amount             bigint      NOT NULL, -- minor units
    currency           text        NOT NULL, -- of the amount: what the customer was shown in our own rows, the settlement's in theirs
    about              text        NOT NULL, -- ours: the payment, refund or dispute; theirs: the balance transaction
    payment_id         uuid,                 -- no foreign key: it would lock the row that every settlement needs
    rate               numeric,              -- theirs, of an exchange, as the provider writes it
    note               text,
    occurred_at        timestamptz NOT NULL, -- decides which period it belongs to
    posted_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ledger_entries_origin_check CHECK (origin IN ('book', 'provider')),
    CONSTRAINT ledger_entries_amount_check CHECK (amount > 0),
    CONSTRAINT ledger_entries_currency_check CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT ledger_entries_accounts_check CHECK (debit <> credit),
    CONSTRAINT ledger_entries_debit_check CHECK (debit IN ('clearing', 'sales', 'refunds', 'disputes', 'provider_balance', 'fees',
        'dispute_fees', 'payouts_in_transit', 'exchange', 'adjustments')),
    CONSTRAINT ledger_entries_credit_check CHECK (credit IN ('clearing', 'sales', 'refunds', 'disputes', 'provider_balance', 'fees',
        'dispute_fees', 'payouts_in_transit', 'exchange', 'adjustments')),
    CONSTRAINT ledger_entries_kind_check CHECK (kind IN ('charge', 'charge_correction', 'refund', 'refund_failure', 'dispute',
        'dispute_reversal', 'fee', 'dispute_fee', 'payout', 'payout_reversal', 'adjustment'))
);
CREATE INDEX ledger_entries_about_idx ON ledger_entries (about);
CREATE INDEX ledger_entries_payment_id_idx ON ledger_entries (payment_id) WHERE payment_id IS NOT NULL;
CREATE INDEX ledger_entries_book_occurred_at_idx ON ledger_entries (occurred_at) WHERE origin = 'book';
-- A transaction of the provider's is entered once, however often and by however many it is read.
CREATE UNIQUE INDEX ledger_entries_provider_key ON ledger_entries (about, debit, credit, currency) WHERE origin = 'provider';

-- +goose StatementBegin
CREATE FUNCTION ledger_entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only: put an entry right by another one' USING ERRCODE = 'HF409';
END;
$$;
-- +goose StatementEnd
CREATE TRIGGER ledger_entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_entries_stay();

-- What the rows of each payment say has moved by now, in the currency that the customer was shown. A refund moves money once the
-- provider has accepted it, a dispute once the provider has taken the money.
CREATE VIEW payment_movements AS
SELECT p.id AS payment_id, 'charge' AS kind, p.id::text AS about, coalesce(nullif(p.amount_received, 0), p.amount) AS amount, p.currency,
       p.updated_at AS at
  FROM payments p WHERE p.status = 'succeeded'
 UNION ALL
SELECT r.payment_id, 'refund', r.id::text,
       CASE WHEN r.status <> 'failed' AND r.provider_refund_id IS NOT NULL THEN r.amount ELSE 0 END, r.currency,
       coalesce(r.settled_at, r.updated_at)
  FROM refunds r
 UNION ALL
SELECT d.payment_id, 'dispute', d.id, CASE WHEN d.withdrawn THEN d.amount ELSE 0 END, d.currency,
       CASE WHEN d.withdrawn THEN d.opened_at ELSE coalesce(d.closed_at, d.updated_at) END
  FROM disputes d;

-- What the book still lacks of that: the entries that make the two agree.
CREATE VIEW ledger_due AS
SELECT m.payment_id, m.about, m.currency, m.at, abs(lacks.amount) AS amount,
       CASE WHEN lacks.amount > 0 THEN m.kind ELSE side.undone END AS kind,
       CASE WHEN lacks.amount > 0 THEN side.debit ELSE side.credit END AS debit,
       CASE WHEN lacks.amount > 0 THEN side.credit ELSE side.debit END AS credit
  FROM payment_movements m
  JOIN (VALUES ('charge', 'charge_correction', 'clearing', 'sales'),
               ('refund', 'refund_failure', 'refunds', 'clearing'),
               ('dispute', 'dispute_reversal', 'disputes', 'clearing')) AS side (kind, undone, debit, credit) ON side.kind = m.kind
 CROSS JOIN LATERAL (
       SELECT m.amount - coalesce(sum(CASE WHEN e.kind = m.kind THEN e.amount ELSE -e.amount END), 0)::bigint AS amount
         FROM ledger_entries e WHERE e.origin = 'book' AND e.about = m.about AND e.currency = m.currency) AS lacks
 WHERE lacks.amount <> 0;

-- What has moved before there was a book.
INSERT INTO ledger_entries (origin, kind, debit, credit, amount, currency, about, payment_id, occurred_at)
SELECT 'book', kind, debit, credit, amount, currency, about, payment_id, at FROM ledger_due;
