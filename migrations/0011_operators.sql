-- +goose Up
-- The operators' desk: a permission for each act, what is stuck by age, and acts that wait for a second person or go on for long.

ALTER TABLE api_tokens
    DROP CONSTRAINT api_tokens_scopes_check,
    ADD CONSTRAINT api_tokens_scopes_check CHECK (
        cardinality(scopes) > 0
        AND scopes <@ ARRAY['bookings:read', 'bookings:write', 'finance', 'operator', 'operator:read', 'operator:replay',
                            'operator:republish', 'operator:resolve', 'operator:refund', 'operator:discard', 'operator:pause']
    );

-- What people look at: one page is one walk along this, whatever the kind, status or age asked for. Sweep and reconciler walk by
-- due time, along outbox_unfinished_status_due_at_idx.
CREATE INDEX outbox_unfinished_kind_status_created_at_idx ON outbox (kind, status, created_at, id)
    WHERE status IN ('pending', 'in_doubt', 'parked');
CREATE INDEX outbox_discarded_id_idx ON outbox (id) WHERE status = 'discarded';

-- An event that was discarded gives its place in the booking's order to the marker that says so.
ALTER TABLE outbox DROP CONSTRAINT outbox_booking_id_event_seq_key;
CREATE UNIQUE INDEX outbox_booking_id_event_seq_key ON outbox (booking_id, event_seq) WHERE status <> 'discarded';

CREATE INDEX operator_actions_effect_id_at_idx ON operator_actions (effect_id, at, id);
CREATE INDEX operator_actions_booking_id_at_idx ON operator_actions (booking_id, at, id);
CREATE INDEX operator_actions_at_idx ON operator_actions (at, id);

-- All that has happened to one booking, on one line of time.
CREATE INDEX idempotency_keys_booking_id_idx ON idempotency_keys (booking_id);
CREATE INDEX provider_events_intent_id_idx ON provider_events (intent_id) WHERE intent_id <> '';
CREATE INDEX provider_events_booking_id_idx ON provider_events (booking_id) WHERE booking_id <> '';

-- Acts that wait for a second person. One that is open past its end has expired: nothing has to happen for that.
CREATE TABLE operator_requests (
    id             uuid        NOT NULL CONSTRAINT operator_requests_pkey PRIMARY KEY,
    act            text        NOT NULL,
    effect_id      uuid        CONSTRAINT operator_requests_effect_id_fkey REFERENCES outbox, -- none: of the booking itself
    booking_id     uuid        NOT NULL CONSTRAINT operator_requests_booking_id_fkey REFERENCES bookings,
    asked          bigint      NOT NULL, -- of a refund: the amount that was asked for; 0: all that is left
    category       text        NOT NULL, -- likewise: the provider's word for it, or none
    amount         bigint      NOT NULL, -- minor units that the act lets move
    currency       text        NOT NULL,
    seen           text        NOT NULL, -- the state that it was asked for in: nothing else may have happened since
    actor          text        NOT NULL,
    reason         text        NOT NULL,
    status         text        NOT NULL DEFAULT 'open',
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at     timestamptz NOT NULL,
    decided_by     text,
    decided_reason text,
    decided_at     timestamptz,
    CONSTRAINT operator_requests_status_check CHECK (status IN ('open', 'approved', 'withdrawn')),
    CONSTRAINT operator_requests_decided_check CHECK (
        (status = 'open') = (decided_by IS NULL) AND (decided_by IS NULL) = (decided_at IS NULL) AND (decided_by IS NULL) = (decided_reason IS NULL)
    ),
    -- Two persons: whoever asked does not approve.
    CONSTRAINT operator_requests_second_person_check CHECK (status <> 'approved' OR decided_by <> actor)
);
CREATE INDEX operator_requests_open_idx ON operator_requests (created_at) WHERE status = 'open';
CREATE INDEX operator_requests_created_at_idx ON operator_requests (created_at);

-- One act done to many effects, which are chosen when it begins.
CREATE TABLE operator_runs (
    id          uuid        NOT NULL CONSTRAINT operator_runs_pkey PRIMARY KEY,
    act         text        NOT NULL,
    filter      jsonb       NOT NULL,
    cap         int         NOT NULL,
    actor       text        NOT NULL,
    reason      text        NOT NULL,
    total       int         NOT NULL,
    more        boolean     NOT NULL, -- more matched than the cap let in
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    CONSTRAINT operator_runs_reason_check CHECK (char_length(btrim(reason)) > 0)
);
CREATE INDEX operator_runs_started_at_idx ON operator_runs (started_at);
CREATE INDEX operator_runs_unfinished_idx ON operator_runs (started_at) WHERE finished_at IS NULL;

CREATE TABLE operator_run_items (
    run_id    uuid NOT NULL CONSTRAINT operator_run_items_run_id_fkey REFERENCES operator_runs,
    position  int  NOT NULL,
    effect_id uuid NOT NULL CONSTRAINT operator_run_items_effect_id_fkey REFERENCES outbox,
    status    text NOT NULL DEFAULT 'waiting',
    said      text,
    action_id uuid, -- its row in operator_actions
    claimed_until timestamptz, -- somebody is at it, outside of any transaction
    CONSTRAINT operator_run_items_pkey PRIMARY KEY (run_id, position),
    CONSTRAINT operator_run_items_run_id_effect_id_key UNIQUE (run_id, effect_id),
    CONSTRAINT operator_run_items_status_check CHECK (status IN ('waiting', 'done', 'refused')),
    CONSTRAINT operator_run_items_action_check CHECK ((status = 'done') = (action_id IS NOT NULL))
);
CREATE INDEX operator_run_items_waiting_idx ON operator_run_items (run_id, position) WHERE status = 'waiting';
CREATE INDEX operator_run_items_refused_idx ON operator_run_items (run_id, position) WHERE status = 'refused';
