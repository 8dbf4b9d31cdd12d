-- +goose Up
-- Money that goes back. A row is committed with the cause of the refund and with the effect that makes it; the provider's
-- key derives from its id.

CREATE TABLE refunds (
    id                 uuid        NOT NULL CONSTRAINT refunds_pkey PRIMARY KEY,
    payment_id         uuid        NOT NULL CONSTRAINT refunds_payment_id_fkey REFERENCES payments,
    effect_id          uuid        NOT NULL CONSTRAINT refunds_effect_id_key UNIQUE
                                   CONSTRAINT refunds_effect_id_fkey REFERENCES outbox,
    amount             bigint      NOT NULL, -- minor units
    currency           text        NOT NULL,
    reason             text        NOT NULL,
    status             text        NOT NULL DEFAULT 'pending',
    held_back_at       timestamptz,          -- parked by the hourly ceiling: whoever replays it lets it pass
    provider_refund_id text,                 -- of the refund that settled this one
    by_hand            boolean     NOT NULL DEFAULT false, -- somebody had given the money back before us
    failure_code       text,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    CONSTRAINT refunds_amount_check CHECK (amount > 0),
    CONSTRAINT refunds_reason_check CHECK (reason IN ('late_success')),
    CONSTRAINT refunds_status_check CHECK (status IN ('pending', 'succeeded', 'failed'))
);
-- G3: a success that comes after the end is given back once.
CREATE UNIQUE INDEX refunds_payment_id_late_success_key ON refunds (payment_id) WHERE reason = 'late_success';
CREATE INDEX provider_calls_refund_first_sent_at_idx ON provider_calls (first_sent_at) WHERE operation = 'refund';
