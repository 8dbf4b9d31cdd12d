-- +goose Up
-- Money that goes back: one row for each refund that we make, committed with its cause and with the effect that makes it, and
-- one for each that somebody has made by hand at the provider. What is left of a payment is never stored: it is what was
-- taken less the amounts of all rows that have not failed, read under the payment's lock.

CREATE TABLE refunds (
    id                 uuid        NOT NULL CONSTRAINT refunds_pkey PRIMARY KEY, -- the provider's key derives from it
    payment_id         uuid        NOT NULL CONSTRAINT refunds_payment_id_fkey REFERENCES payments,
    effect_id          uuid        CONSTRAINT refunds_effect_id_key UNIQUE       -- none: made by hand at the provider
                                   CONSTRAINT refunds_effect_id_fkey REFERENCES outbox,
    amount             bigint      NOT NULL, -- minor units
    currency           text        NOT NULL,
    reason             text        NOT NULL,
    category           text,                 -- the provider's word for why, where somebody chose one
    requested_by       text,                 -- who asked for it, where a person did,
    request_reason     text,                 -- and in which words
    status             text        NOT NULL DEFAULT 'pending',
    held_back_at       timestamptz,          -- parked by the hourly ceiling: whoever replays it lets it pass
    provider_refund_id text        CONSTRAINT refunds_provider_refund_id_key UNIQUE,
    failure_code       text,
    watch_at           timestamptz,          -- when the provider's refunds are listed next although nothing is in doubt
    watches            int         NOT NULL DEFAULT 0,
    settled_at         timestamptz,          -- when it was seen to have succeeded or failed
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    CONSTRAINT refunds_amount_check CHECK (amount > 0),
    CONSTRAINT refunds_reason_check CHECK (reason IN ('late_success', 'cancellation', 'requested', 'dashboard')),
    CONSTRAINT refunds_category_check CHECK (category IN ('duplicate', 'fraudulent', 'requested_by_customer')),
    CONSTRAINT refunds_status_check CHECK (status IN ('pending', 'succeeded', 'failed')),
    CONSTRAINT refunds_effect_check CHECK ((effect_id IS NULL) = (reason = 'dashboard')),
    CONSTRAINT refunds_dashboard_check CHECK (reason <> 'dashboard' OR provider_refund_id IS NOT NULL),
    CONSTRAINT refunds_requested_check CHECK (reason <> 'requested' OR (requested_by IS NOT NULL AND request_reason IS NOT NULL))
);
CREATE INDEX refunds_payment_id_idx ON refunds (payment_id);
CREATE INDEX refunds_watch_at_idx ON refunds (watch_at) WHERE watch_at IS NOT NULL;
-- G3: a success that comes after the end is given back once.
CREATE UNIQUE INDEX refunds_payment_id_late_success_key ON refunds (payment_id) WHERE reason = 'late_success';
-- And a booking is cancelled once.
CREATE UNIQUE INDEX refunds_payment_id_cancellation_key ON refunds (payment_id) WHERE reason = 'cancellation';

-- Each refund has its own ordinals.
ALTER TABLE provider_calls
    ADD COLUMN refund_id uuid CONSTRAINT provider_calls_refund_id_fkey REFERENCES refunds,
    ADD CONSTRAINT provider_calls_refund_check CHECK ((operation = 'refund') = (refund_id IS NOT NULL));
CREATE UNIQUE INDEX provider_calls_payment_id_ordinal_key ON provider_calls (payment_id, operation, ordinal, coalesce(refund_id, payment_id));
CREATE INDEX provider_calls_refund_first_sent_at_idx ON provider_calls (first_sent_at) WHERE operation = 'refund';
