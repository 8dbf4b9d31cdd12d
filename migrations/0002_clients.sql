-- +goose Up
-- Who may call, and with what. A token is stored as its hash only: a stolen copy of this table opens nothing.

CREATE TABLE clients (
    id         uuid        NOT NULL CONSTRAINT clients_pkey PRIMARY KEY,
    name       text        NOT NULL CONSTRAINT clients_name_key UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT clients_name_check CHECK (char_length(name) BETWEEN 1 AND 200)
);

CREATE TABLE api_tokens (
    id         uuid        NOT NULL CONSTRAINT api_tokens_pkey PRIMARY KEY,
    client_id  uuid        NOT NULL CONSTRAINT api_tokens_client_id_fkey REFERENCES clients,
    hash       bytea       NOT NULL CONSTRAINT api_tokens_hash_key UNIQUE,
    scopes     text[]      NOT NULL,
    label      text        NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    CONSTRAINT api_tokens_hash_check CHECK (octet_length(hash) = 32),
    CONSTRAINT api_tokens_scopes_check CHECK (
        cardinality(scopes) > 0
        AND scopes <@ ARRAY['bookings:read', 'bookings:write', 'finance', 'operator']
    )
);
