-- +goose Up
-- The money: one payment per booking, and every send that was ever made for it.

CREATE TABLE payments (
    id                 uuid        NOT NULL CONSTRAINT payments_pkey PRIMARY KEY,
    booking_id         uuid        NOT NULL CONSTRAINT payments_booking_id_key UNIQUE
                                   CONSTRAINT payments_booking_id_fkey REFERENCES bookings,
    amount             bigint      NOT NULL, -- minor units
    currency           text        NOT NULL,
    amount_received    bigint      NOT NULL DEFAULT 0,
    payment_method     text        NOT NULL, -- the token that the customer sent for the newest card
    card               int         NOT NULL DEFAULT 1, -- which card of the customer: the ordinal of update and confirm
    provider           text        NOT NULL DEFAULT 'stripe',
    livemode           boolean,              -- of the key that made the intent
    provider_intent_id text        CONSTRAINT payments_provider_intent_id_key UNIQUE,
    provider_method_id text,                 -- what the provider made of payment_method
    shown_card         int         NOT NULL DEFAULT 0, -- the newest card that the intent was seen to hold: only then is it confirmed
    status             text        NOT NULL DEFAULT 'pending',
    failure_code       text,
    decline_code       text,
    version            bigint      NOT NULL DEFAULT 1, -- raised by every recorded send and every settle that changes something
    watch_at           timestamptz,          -- when the intent is read next although nothing is in doubt
    watches            int         NOT NULL DEFAULT 0,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    CONSTRAINT payments_status_check CHECK (status IN
        ('pending', 'processing', 'requires_action', 'declined', 'in_doubt', 'succeeded', 'canceled', 'refused')),
    CONSTRAINT payments_amount_check CHECK (amount > 0)
);
-- Every other card that a customer has tried: how many are too many is counted here, by booking and by client.
CREATE TABLE card_changes (
    payment_id uuid        NOT NULL CONSTRAINT card_changes_payment_id_fkey REFERENCES payments,
    card       int         NOT NULL, -- 2 is the first other card
    client_id  uuid        NOT NULL,
    changed_at timestamptz NOT NULL,
    CONSTRAINT card_changes_pkey PRIMARY KEY (payment_id, card)
);
CREATE INDEX card_changes_client_id_changed_at_idx ON card_changes (client_id, changed_at);

CREATE INDEX payments_watch_at_idx ON payments (watch_at) WHERE watch_at IS NOT NULL;

-- A row is written, and committed, before the send that it records. Parameters are frozen with the key: every re-send
-- is equal to the first, whatever was deployed since.
CREATE TABLE provider_calls (
    payment_id    uuid        NOT NULL CONSTRAINT provider_calls_payment_id_fkey REFERENCES payments,
    operation     text        NOT NULL,
    ordinal       int         NOT NULL,
    key           text        NOT NULL CONSTRAINT provider_calls_pkey PRIMARY KEY,
    params        jsonb       NOT NULL,
    first_sent_at timestamptz NOT NULL,
    last_sent_at  timestamptz NOT NULL,
    sends         int         NOT NULL DEFAULT 1,
    outcome       text        NOT NULL DEFAULT 'unknown', -- over all sends of the key
    stored_error  boolean     NOT NULL DEFAULT false,     -- the key answers 5xx for the rest of its life
    http_status   int,
    error_code    text,
    request_id    text,
    replayed      boolean,
    CONSTRAINT provider_calls_operation_check CHECK (operation IN ('create', 'update', 'confirm', 'cancel', 'refund')),
    CONSTRAINT provider_calls_outcome_check CHECK (outcome IN
        ('unknown', 'executed', 'declined', 'known_state', 'rejected', 'key_mismatch'))
);
