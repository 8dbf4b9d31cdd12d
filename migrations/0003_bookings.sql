-- +goose Up
-- What can be booked, who booked it, and which place is taken when.

CREATE EXTENSION IF NOT EXISTS btree_gist;

CREATE TABLE resources (
    id            uuid        NOT NULL CONSTRAINT resources_pkey PRIMARY KEY,
    name          text        NOT NULL,
    time_zone     text        NOT NULL,
    places        int         NOT NULL,
    unit_minutes  int         NOT NULL,
    price         bigint      NOT NULL, -- for one place and one unit, in minor units
    currency      text        NOT NULL,
    hold          interval    NOT NULL, -- how long a slot waits for its money
    refund_policy jsonb       NOT NULL DEFAULT '{}',
    created_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT resources_name_check CHECK (char_length(name) BETWEEN 1 AND 200),
    CONSTRAINT resources_places_check CHECK (places BETWEEN 1 AND 1000),
    CONSTRAINT resources_unit_minutes_check CHECK (unit_minutes BETWEEN 1 AND 44640),
    CONSTRAINT resources_price_check CHECK (price > 0 AND price <= 999999999999),
    CONSTRAINT resources_currency_check CHECK (currency ~ '^[A-Z]{3}$'),
    -- The hold is always shorter than the provider key's horizon (20 h): what a hold began, its key can still settle.
    CONSTRAINT resources_hold_check CHECK (hold > interval '0' AND hold < interval '20 hours')
);

-- The provider refuses smaller charges. The figures drift, so they are dated data; the provider's own answer
-- (amount_too_small) stays the authority. Source: Stripe, "Minimum and maximum charge amounts".
CREATE TABLE charge_minimums (
    currency text   NOT NULL CONSTRAINT charge_minimums_pkey PRIMARY KEY,
    amount   bigint NOT NULL, -- minor units
    as_of    date   NOT NULL
);
INSERT INTO charge_minimums (currency, amount, as_of) VALUES
    ('USD', 50, '2024-01-01'), ('AED', 200, '2024-01-01'), ('AUD', 50, '2024-01-01'), ('BGN', 100, '2024-01-01'),
    ('BRL', 50, '2024-01-01'), ('CAD', 50, '2024-01-01'), ('CHF', 50, '2024-01-01'), ('CZK', 1500, '2024-01-01'),
    ('DKK', 250, '2024-01-01'), ('EUR', 50, '2024-01-01'), ('GBP', 30, '2024-01-01'), ('HKD', 400, '2024-01-01'),
    ('HUF', 17500, '2024-01-01'), ('INR', 50, '2024-01-01'), ('JPY', 50, '2024-01-01'), ('MXN', 1000, '2024-01-01'),
    ('MYR', 200, '2024-01-01'), ('NOK', 300, '2024-01-01'), ('NZD', 50, '2024-01-01'), ('PLN', 200, '2024-01-01'),
    ('RON', 200, '2024-01-01'), ('SEK', 300, '2024-01-01'), ('SGD', 50, '2024-01-01'), ('THB', 1000, '2024-01-01');

CREATE TABLE bookings (
    id              uuid        NOT NULL CONSTRAINT bookings_pkey PRIMARY KEY,
    client_id       uuid        NOT NULL, -- no foreign keys to the two hot parents: each check would share-lock the
    resource_id     uuid        NOT NULL, -- one row that every rival needs; neither parent is ever deleted
    during          tstzrange   NOT NULL,
    quantity        int         NOT NULL,
    amount          bigint      NOT NULL, -- minor units
    currency        text        NOT NULL,
    customer_name   text        NOT NULL,
    customer_email  text        NOT NULL,
    metadata        jsonb       NOT NULL DEFAULT '{}',
    status          text        NOT NULL,
    ending_reason   text,                 -- why it is ending, or ended
    hold_expires_at timestamptz NOT NULL,
    version         bigint      NOT NULL DEFAULT 1,
    event_seq       bigint      NOT NULL DEFAULT 0, -- of the newest event, taken under this row's lock
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    CONSTRAINT bookings_during_check CHECK (
        lower_inc(during) AND NOT upper_inc(during) AND NOT isempty(during)
        AND lower(during) IS NOT NULL AND upper(during) IS NOT NULL
    ),
    CONSTRAINT bookings_quantity_check CHECK (quantity > 0),
    CONSTRAINT bookings_amount_check CHECK (amount > 0),
    CONSTRAINT bookings_status_check CHECK (status IN ('held', 'confirmed', 'ending', 'expired', 'cancelled', 'failed')),
    CONSTRAINT bookings_ending_reason_check CHECK (
        CASE WHEN status IN ('held', 'confirmed') THEN ending_reason IS NULL
             ELSE ending_reason IN ('expire', 'cancel', 'refuse', 'doubt') END
    ),
    CONSTRAINT bookings_ended_at_check CHECK ((ended_at IS NOT NULL) = (status IN ('expired', 'cancelled', 'failed')))
);
-- Holds that have ended are swept by this, not scheduled one by one.
CREATE INDEX bookings_held_hold_expires_at_idx ON bookings (hold_expires_at) WHERE status = 'held';
CREATE INDEX bookings_client_id_id_idx ON bookings (client_id, id);

CREATE TABLE allocations (
    booking_id  uuid      NOT NULL CONSTRAINT allocations_booking_id_fkey REFERENCES bookings
                          DEFERRABLE INITIALLY DEFERRED, -- the slot is taken before the booking is made
    resource_id uuid      NOT NULL,
    place       int       NOT NULL,
    during      tstzrange NOT NULL,
    active      boolean   NOT NULL DEFAULT true,
    CONSTRAINT allocations_pkey PRIMARY KEY (booking_id, place),
    -- G2: the database decides. Every active state takes its place, whether paid for yet or not.
    CONSTRAINT allocations_resource_id_place_during_excl
        EXCLUDE USING gist (resource_id WITH =, place WITH =, during WITH &&) WHERE (active)
);

CREATE TABLE idempotency_keys (
    client_id           uuid        NOT NULL,
    method              text        NOT NULL,
    route               text        NOT NULL, -- route template with its path ids filled in
    key                 text        NOT NULL,
    fingerprint         bytea       NOT NULL,
    fingerprint_version smallint    NOT NULL,
    booking_id          uuid        CONSTRAINT idempotency_keys_booking_id_fkey REFERENCES bookings
                                    DEFERRABLE INITIALLY DEFERRED, -- the key is claimed before the booking is made
    response_status     smallint,             -- the response is stored in the transaction that decides it
    response_body       text,
    response_location   text,
    created_at          timestamptz NOT NULL,
    response_expires_at timestamptz NOT NULL, -- the response expires; the key stays as long as the booking
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (client_id, method, route, key),
    CONSTRAINT idempotency_keys_key_check CHECK (char_length(key) BETWEEN 1 AND 255)
);
