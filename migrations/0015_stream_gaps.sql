-- +goose Up
-- Events that the stream has acknowledged and does not have, as the newest sweep of their time has found them.
CREATE TABLE stream_gaps (
    event_id    uuid        NOT NULL CONSTRAINT stream_gaps_pkey PRIMARY KEY,
    booking_id  uuid        NOT NULL,
    occurred_at timestamptz NOT NULL,
    why         text        NOT NULL
);
CREATE INDEX stream_gaps_occurred_at_idx ON stream_gaps (occurred_at);
