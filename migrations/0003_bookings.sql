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
    -- What a cancellation gives back: steps, the earliest first. No step: nothing. The default gives everything until the start.
    refund_policy jsonb       NOT NULL DEFAULT '[{"hours_before": 0, "percent": 100}]',
    created_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT resources_refund_policy_check CHECK (jsonb_typeof(refund_policy) = 'array'),
    CONSTRAINT resources_name_check CHECK (char_length(name) BETWEEN 1 AND 200),
    CONSTRAINT resources_places_check CHECK (places BETWEEN 1 AND 1000),
    CONSTRAINT resources_unit_minutes_check CHECK (unit_minutes BETWEEN 1 AND 44640),
    CONSTRAINT resources_price_check CHECK (price > 0 AND price <= 999999999999),
    CONSTRAINT resources_currency_check CHECK (currency ~ '^[A-Z]{3}$'),
    -- The hold is always shorter than the provider key's horizon (20 h): what a hold began, its key can still settle.
    CONSTRAINT resources_hold_check CHECK (hold > interval '0' AND hold < interval '20 hours')
);

-- What the provider can be asked to charge, per currency and in our minor units (ISO 4217). Its own units are another matter
-- (payments/stripe/scale.go); a test compares the two. A currency that is not here cannot be charged: no resource is priced
-- in it, and nothing is booked. The five of ISO 4217 whose digits do not fit what the provider's documentation says of them
-- (IQD LYD CLF UYI UYW) are left out, since a guess could take ten times the price, and so are codes of funds and accounts.
-- Source: Stripe, "Supported currencies" (docs.stripe.com/currencies), API version 2023-10-16.
CREATE TABLE charge_currencies (
    currency text   NOT NULL CONSTRAINT charge_currencies_pkey PRIMARY KEY,
    step     bigint NOT NULL DEFAULT 1,        -- an amount is a multiple of it: smaller fractions are not counted
    maximum  bigint NOT NULL DEFAULT 99999999, -- eight digits in the provider's units
    as_of    date   NOT NULL DEFAULT '2023-10-16',
    CONSTRAINT charge_currencies_step_check CHECK (step > 0),
    CONSTRAINT charge_currencies_maximum_check CHECK (maximum >= step AND maximum <= 999999999999)
);
INSERT INTO charge_currencies (currency, step, maximum) VALUES
    ('BHD', 10, 99999990), ('JOD', 10, 99999990), ('KWD', 10, 99999990), ('OMR', 10, 99999990), ('TND', 10, 99999990), -- the third digit is 0
    ('ISK', 1, 999999), ('UGX', 1, 999999), -- sent with two digits more, which are 00
    ('MGA', 100, 9999999900),               -- sent in whole ariary
    ('IDR', 1, 999999999999);               -- twelve digits
INSERT INTO charge_currencies (currency) SELECT unnest(string_to_array(
    'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE '
    'CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF ILS INR IRR JMD JPY KES KGS '
    'KHR KMF KPW KRW KYD KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB '
    'PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY '
    'TTD TWD TZS UAH USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG', ' '));

-- The least that the provider charges. The figures drift, so each holds from its date until the next one of its currency
-- (UTC), and `api minimums set` adds more: no deploy. The provider judges by the currency that the account is paid in, which
-- need not be the booking's, so this spares customers a refusal and is not the authority: the provider's own answer,
-- amount_too_small, is. Source: Stripe, "Minimum and maximum charge amounts" (docs.stripe.com/currencies).
CREATE TABLE charge_minimums (
    currency text   NOT NULL,
    as_of    date   NOT NULL,
    amount   bigint NOT NULL, -- minor units; 0: none from this date on
    CONSTRAINT charge_minimums_pkey PRIMARY KEY (currency, as_of),
    CONSTRAINT charge_minimums_currency_fkey FOREIGN KEY (currency) REFERENCES charge_currencies,
    CONSTRAINT charge_minimums_amount_check CHECK (amount BETWEEN 0 AND 999999999999)
);
INSERT INTO charge_minimums (currency, as_of, amount) VALUES
    ('AED', '2024-01-01', 200), ('AUD', '2024-01-01', 50), ('BRL', '2024-01-01', 50), ('CAD', '2024-01-01', 50),
    ('CHF', '2024-01-01', 50), ('CZK', '2024-01-01', 1500), ('DKK', '2024-01-01', 250), ('EUR', '2024-01-01', 50),
    ('GBP', '2024-01-01', 30), ('HKD', '2024-01-01', 400), ('HUF', '2024-01-01', 17500), ('INR', '2024-01-01', 50),
    ('JPY', '2024-01-01', 50), ('MXN', '2024-01-01', 1000), ('MYR', '2024-01-01', 200), ('NOK', '2024-01-01', 300),
    ('NZD', '2024-01-01', 50), ('PLN', '2024-01-01', 200), ('RON', '2024-01-01', 200), ('SEK', '2024-01-01', 300),
    ('SGD', '2024-01-01', 50), ('THB', '2024-01-01', 1000), ('USD', '2024-01-01', 50);

-- What holds now: the minimum is that of the newest date which is not in the future, NULL where there is none.
CREATE VIEW charge_limits AS
SELECT c.currency, c.step, c.maximum,
       (SELECT m.amount FROM charge_minimums m
         WHERE m.currency = c.currency AND m.as_of <= (clock_timestamp() AT TIME ZONE 'UTC')::date
         ORDER BY m.as_of DESC LIMIT 1) AS minimum
  FROM charge_currencies c;

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
    refund_policy   jsonb       NOT NULL DEFAULT '[{"hours_before": 0, "percent": 100}]', -- the resource's when it was accepted: what the customer was shown
    cancel_requested_at timestamptz,      -- when the customer asked first
    cancel_refund   bigint,               -- what the policy gave back at that moment, in minor units
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
    CONSTRAINT bookings_cancel_check CHECK ((cancel_requested_at IS NULL) = (cancel_refund IS NULL) AND cancel_refund BETWEEN 0 AND amount),
    CONSTRAINT bookings_ended_at_check CHECK ((ended_at IS NOT NULL) = (status IN ('expired', 'cancelled', 'failed')))
);
-- Holds that have ended are swept by this, not scheduled one by one.
CREATE INDEX bookings_held_hold_expires_at_idx ON bookings (hold_expires_at) WHERE status = 'held';
-- How many are ending, and since when: an alarm's question, asked at every scrape.
CREATE INDEX bookings_ending_updated_at_idx ON bookings (updated_at) WHERE status = 'ending';
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
