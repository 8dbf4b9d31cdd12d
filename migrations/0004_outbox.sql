-- +goose Up
-- Effects: what must happen because something was decided. The effect row is the truth; its River job only carries it.

CREATE TABLE outbox (
    id              uuid        NOT NULL CONSTRAINT outbox_pkey PRIMARY KEY, -- for an event: the event's id
    booking_id      uuid        NOT NULL CONSTRAINT outbox_booking_id_fkey REFERENCES bookings,
    kind            text        NOT NULL,
    event_type      text,
    event_seq       bigint,
    payload         jsonb       NOT NULL DEFAULT '{}',
    status          text        NOT NULL DEFAULT 'pending',
    attempts        int         NOT NULL DEFAULT 0, -- ours, since River deletes its own
    last_error      text,                           -- stripped of anything the provider or a driver said
    due_at          timestamptz NOT NULL,           -- not before this instant; for a doubt, when it is looked at next
    job_id          bigint,                         -- the River job that carries it; no foreign key, River prunes its rows
    stream          text,
    stream_sequence bigint,
    duplicate       boolean,
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    CONSTRAINT outbox_booking_id_event_seq_key UNIQUE (booking_id, event_seq),
    CONSTRAINT outbox_kind_check CHECK (kind IN ('charge', 'cancel', 'refund', 'refresh', 'publish')),
    CONSTRAINT outbox_status_check CHECK (status IN ('pending', 'done', 'not_needed', 'in_doubt', 'parked', 'discarded')),
    CONSTRAINT outbox_event_check CHECK (
        (kind = 'publish') = (event_type IS NOT NULL) AND (kind = 'publish') = (event_seq IS NOT NULL)
    ),
    CONSTRAINT outbox_finished_at_check CHECK ((finished_at IS NOT NULL) = (status IN ('done', 'not_needed', 'discarded'))),
    -- G6: only a stream's acknowledgement completes an event.
    CONSTRAINT outbox_stream_check CHECK (
        kind <> 'publish' OR status <> 'done' OR (stream IS NOT NULL AND stream_sequence IS NOT NULL)
    )
);
-- Everything unfinished is found by this: the sweep, the reconciler, the list of what is stuck. It stays small.
CREATE INDEX outbox_unfinished_status_due_at_idx ON outbox (status, due_at)
    WHERE status IN ('pending', 'in_doubt', 'parked');
CREATE INDEX outbox_booking_id_idx ON outbox (booking_id, kind);

-- One switch per kind of effect. A paused charge takes no money; fences, reads and refunds go on.
CREATE TABLE outbox_pauses (
    kind      text        NOT NULL CONSTRAINT outbox_pauses_pkey PRIMARY KEY,
    actor     text        NOT NULL,
    reason    text        NOT NULL,
    paused_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT outbox_pauses_kind_check CHECK (kind IN ('charge', 'publish'))
);

CREATE TABLE operator_actions (
    id         uuid        NOT NULL CONSTRAINT operator_actions_pkey PRIMARY KEY,
    actor      text        NOT NULL,
    action     text        NOT NULL,
    effect_id  uuid        CONSTRAINT operator_actions_effect_id_fkey REFERENCES outbox,
    booking_id uuid        CONSTRAINT operator_actions_booking_id_fkey REFERENCES bookings,
    reason     text        NOT NULL,
    before     jsonb       NOT NULL,
    after      jsonb       NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT operator_actions_reason_check CHECK (char_length(btrim(reason)) > 0)
);

-- Which worker processes live. A job that runs in a process that is gone is carried on by another at once, long
-- before River's own rescue, which goes by time alone.
CREATE TABLE outbox_workers (
    id      text        NOT NULL CONSTRAINT outbox_workers_pkey PRIMARY KEY, -- River's client id
    seen_at timestamptz NOT NULL
);

-- enqueue_job inserts the River job that carries an effect, as River's own insert would (a contract test compares
-- the two, column by column), but without River's NOTIFY: a notification inside the transaction takes a lock over
-- COMMIT that every other booking waits for. Workers are woken after the commit, and poll anyway.
-- +goose StatementBegin
CREATE FUNCTION enqueue_job(p_kind text, p_effect uuid, p_at timestamptz) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$ -- not sql: that would parse and plan the insert at each call
DECLARE
    v_id bigint;
BEGIN
    INSERT INTO river_job (args, created_at, kind, max_attempts, metadata, priority, queue, scheduled_at, state, tags)
    VALUES (jsonb_build_object('effect_id', p_effect), now(), p_kind, 25, '{}', 1, p_kind, p_at,
            CASE WHEN p_at > now() THEN 'scheduled' ELSE 'available' END::river_job_state, '{}')
    RETURNING id INTO v_id;
    RETURN v_id;
END;
$$;
-- +goose StatementEnd
