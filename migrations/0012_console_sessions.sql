-- +goose Up
-- Who is signed in to the operators' pages. A session is stored as the hash of its cookie only, and lives no longer than its
-- token: a stolen copy of this table opens nothing.

CREATE TABLE console_sessions (
    hash         bytea       NOT NULL CONSTRAINT console_sessions_pkey PRIMARY KEY,
    token_id     uuid        NOT NULL CONSTRAINT console_sessions_token_id_fkey REFERENCES api_tokens,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at   timestamptz NOT NULL,
    CONSTRAINT console_sessions_hash_check CHECK (octet_length(hash) = 32)
);
CREATE INDEX console_sessions_expires_at_idx ON console_sessions (expires_at);
