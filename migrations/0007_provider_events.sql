-- +goose Up
-- What the provider has told, each event once: receipts, stored before they are acted on. A row holds ids and nothing of
-- how its object stood: that is read from the provider.

CREATE TABLE provider_events (
    id          text        NOT NULL CONSTRAINT provider_events_pkey PRIMARY KEY, -- the provider's
    type        text        NOT NULL,
    livemode    boolean     NOT NULL,
    object_type text        NOT NULL, -- ids and metadata are empty where the event has none
    object_id   text        NOT NULL,
    intent_id   text        NOT NULL,
    booking_id  text        NOT NULL, -- as the metadata has them: other applications on the account write theirs
    payment_id  text        NOT NULL,
    request_key text        NOT NULL, -- the idempotency key of the request that caused it
    created_at  timestamptz NOT NULL, -- by the provider's clock
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    via         text        NOT NULL, -- who brought it first
    status      text        NOT NULL DEFAULT 'pending',
    attempts    int         NOT NULL DEFAULT 0,
    last_error  text,                 -- why it is not settled yet, or never will be; words of ours
    due_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    CONSTRAINT provider_events_via_check CHECK (via IN ('webhook', 'sweep')),
    CONSTRAINT provider_events_status_check CHECK (status IN
        ('pending', 'settled', 'ignored', 'foreign', 'parked')),
    CONSTRAINT provider_events_finished_at_check CHECK ((finished_at IS NULL) = (status = 'pending'))
);
-- What is unfinished stays little; what is parked waits for a person.
CREATE INDEX provider_events_due_at_idx ON provider_events (due_at) WHERE status = 'pending';
CREATE INDEX provider_events_parked_idx ON provider_events (received_at) WHERE status = 'parked';

-- How far the provider's list of events has been read: one row. While a window is being walked, its bounds and the last
-- event of the page before are kept, so that a run goes on where the one before stopped.
CREATE TABLE provider_events_sweep (
    only_row    boolean     NOT NULL DEFAULT true CONSTRAINT provider_events_sweep_pkey PRIMARY KEY,
    swept_to    timestamptz NOT NULL,
    window_from timestamptz,
    window_to   timestamptz,
    after_id    text,
    due_at      timestamptz NOT NULL,
    CONSTRAINT provider_events_sweep_only_row_check CHECK (only_row),
    CONSTRAINT provider_events_sweep_window_check CHECK (
        (window_from IS NULL) = (window_to IS NULL) AND (after_id IS NULL OR window_from IS NOT NULL)
    )
);
