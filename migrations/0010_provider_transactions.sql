-- +goose Up
-- What moved the account's balance, as the provider has it: the basis of every reconciliation. Rows are copied once and never
-- change; nothing here says what anything was for.

CREATE TABLE provider_transactions (
    id                 text        NOT NULL CONSTRAINT provider_transactions_pkey PRIMARY KEY, -- the provider's
    type               text        NOT NULL, -- the provider's word
    category           text        NOT NULL, -- the provider's reporting category: what to classify by
    source_id          text        NOT NULL, -- the charge, refund, dispute or payout; empty: none, a fee of the account's own
    intent_id          text        NOT NULL, -- that it is about; empty: none, or not told
    amount             bigint      NOT NULL, -- these four in the currency of the settlement, minor units
    fee                bigint      NOT NULL,
    net                bigint      NOT NULL,
    currency           text        NOT NULL,
    exchange_rate      numeric,              -- as the provider writes it; none: nothing was exchanged
    presented_amount   bigint,               -- what the customer was shown, minor units; the sign is the amount's
    presented_currency text,
    created_at         timestamptz NOT NULL, -- by the provider's clock: this decides which day it belongs to
    available_at       timestamptz NOT NULL,
    read_at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT provider_transactions_net_check CHECK (net = amount - fee),
    CONSTRAINT provider_transactions_presented_check CHECK ((presented_amount IS NULL) = (presented_currency IS NULL))
);
CREATE INDEX provider_transactions_created_at_idx ON provider_transactions (created_at);
CREATE INDEX provider_transactions_intent_id_idx ON provider_transactions (intent_id) WHERE intent_id <> '';

-- Up to when they have been read: one row.
CREATE TABLE provider_transactions_cursor (
    only_row boolean     NOT NULL DEFAULT true CONSTRAINT provider_transactions_cursor_pkey PRIMARY KEY,
    read_to  timestamptz NOT NULL,
    due_at   timestamptz NOT NULL DEFAULT clock_timestamp(), -- later while somebody is at it
    CONSTRAINT provider_transactions_cursor_only_row_check CHECK (only_row)
);

-- A charge may have none at first: it is open, and read again, until it has.
ALTER TABLE payments
    ADD COLUMN transaction_stored_at timestamptz,
    ADD COLUMN transaction_asked_at  timestamptz;
CREATE INDEX payments_transaction_missing_idx ON payments (transaction_asked_at NULLS FIRST)
    WHERE status = 'succeeded' AND transaction_stored_at IS NULL;
