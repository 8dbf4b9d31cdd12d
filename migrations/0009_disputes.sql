-- +goose Up
-- Money that cardholders' banks dispute, and what is left of a payment.

-- One row per dispute of the provider's, written only from the provider's own object as it was read.
CREATE TABLE disputes (
    id         text        NOT NULL CONSTRAINT disputes_pkey PRIMARY KEY, -- the provider's
    payment_id uuid        NOT NULL CONSTRAINT disputes_payment_id_fkey REFERENCES payments,
    amount     bigint      NOT NULL, -- minor units
    currency   text        NOT NULL, -- need not be the payment's
    reason     text        NOT NULL, -- the provider's word
    status     text        NOT NULL, -- the provider's word, whatever it is: one that nobody has heard of is of an open dispute
    withdrawn  boolean     NOT NULL, -- the provider has taken the money from us and not given it back
    opened_at  timestamptz NOT NULL, -- by the provider's clock
    closed_at  timestamptz,          -- likewise; known once the event of the closing is here
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT disputes_amount_check CHECK (amount >= 0)
);
CREATE INDEX disputes_payment_id_idx ON disputes (payment_id);
CREATE INDEX disputes_open_idx ON disputes (status) WHERE status NOT IN ('won', 'lost', 'warning_closed');

-- What is left of each payment, in its minor units: the one place where it is reckoned. Whoever decides on it holds the
-- booking's lock.
--   refundable: taken, less what went back or may still, less what a dispute has taken; never below zero
--   contested:  the provider refuses every refund while the bank and we still argue; an inquiry (warning_…) takes no money
--   awaited:    a dispute is won, and its money is not back with us yet
CREATE VIEW payment_balances AS
SELECT p.id AS payment_id, p.booking_id, p.currency, taken.amount AS captured, refunds.amount AS refunded, disputes.amount AS disputed,
       greatest(taken.amount - refunds.amount - disputes.amount, 0) AS refundable, disputes.contested, disputes.awaited
  FROM payments p
 CROSS JOIN LATERAL (
       SELECT CASE WHEN p.status = 'succeeded' THEN coalesce(nullif(p.amount_received, 0), p.amount) ELSE 0 END AS amount) AS taken
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(r.amount), 0)::bigint AS amount FROM refunds r WHERE r.payment_id = p.id AND r.status <> 'failed') AS refunds
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(CASE WHEN d.currency = p.currency THEN d.amount ELSE taken.amount END) -- in another currency: all of it
                           FILTER (WHERE d.withdrawn OR d.status <> 'won' AND d.status NOT LIKE 'warning\_%'), 0)::bigint AS amount,
              coalesce(bool_or(d.status NOT IN ('won', 'lost') AND d.status NOT LIKE 'warning\_%'), false) AS contested,
              coalesce(bool_or(d.status = 'won' AND d.withdrawn), false) AS awaited
         FROM disputes d WHERE d.payment_id = p.id) AS disputes;
