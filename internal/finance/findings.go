package finance

// Each of these statements finds the exceptions of some kinds among what is of [$1, $2), as of $3: (kind, about, booking_id, amount,
// currency, occurred_at, why). $4 is the lag, $5 how long what is missing is only late. What belongs together is looked for in all of
// the tables, so that the windows may be cut anywhere; each exception belongs to one window, by the moment of what it is about. Amounts
// in why are written {1250 EUR}: see words.go.

// theirCharges are the provider's charges: of which booking, if any, whether that has another, and whether money and fee are right.
const theirCharges = `
	SELECT x.kind, t.id AS about, o.booking_id, shown.amount, shown.currency, t.created_at AS occurred_at,
	       CASE WHEN x.kind = 'amount_differs'
	            THEN 'the provider has {' || shown.amount || ' ' || shown.currency || '}, and our books have {' || o.amount || ' ' || o.currency || '}'
	            WHEN x.kind = 'two_charges' AND own.id IS NULL THEN 'the booking has been paid by another payment of the provider''s, which is the one that is its own'
	            WHEN x.kind = 'two_charges' THEN 'the booking''s payment was charged once before'
	            WHEN o.id IS NULL THEN 'no booking of ours has this charge, by its payment or by the ids in its metadata'
	            WHEN o.status <> 'succeeded' THEN 'our books do not say that this booking was paid: its payment there is ' || replace(o.status, '_', ' ')
	            ELSE 'the booking has ended as ' || b.status || ', and nothing goes back' END ||
	       CASE WHEN t.source_id <> '' THEN '; at the provider it is charge ' || t.source_id || CASE WHEN t.intent_id <> '' THEN ' of ' || t.intent_id ELSE '' END ELSE '' END ||
	       CASE WHEN x.kind = 'two_charges' -- which is not to be given back
	            THEN coalesce((SELECT ', and the one to keep is ' || k.source_id FROM provider_transactions k
	                            WHERE k.intent_id = o.intent_id AND k.intent_id <> '' AND k.category = 'charge' AND k.source_id NOT IN ('', t.source_id)
	                            ORDER BY k.created_at, k.id LIMIT 1), '') ELSE '' END AS why
	  FROM provider_transactions t
	 CROSS JOIN LATERAL (SELECT coalesce(t.presented_amount, t.amount) AS amount, coalesce(t.presented_currency, t.currency) AS currency) shown
	  LEFT JOIN payments own ON own.provider_intent_id = nullif(t.intent_id, '')
	  LEFT JOIN payments named ON own.id IS NULL AND named.id = t.payment_ref
	  LEFT JOIN payments booked ON own.id IS NULL AND named.id IS NULL AND booked.booking_id = t.booking_ref
	 CROSS JOIN LATERAL (
	       SELECT coalesce(own.id, named.id, booked.id) AS id, coalesce(own.booking_id, named.booking_id, booked.booking_id) AS booking_id,
	              coalesce(own.status, named.status, booked.status) AS status, coalesce(own.currency, named.currency, booked.currency) AS currency,
	              coalesce(own.provider_intent_id, named.provider_intent_id, booked.provider_intent_id) AS intent_id,
	              coalesce(nullif(own.amount_received, 0), own.amount) AS amount) o
	  LEFT JOIN bookings b ON b.id = o.booking_id
	 CROSS JOIN LATERAL (
	       SELECT CASE WHEN o.id IS NULL THEN 'charged_without_booking'
	                   WHEN own.id IS NULL AND o.status = 'succeeded' THEN 'two_charges'
	                   WHEN o.status <> 'succeeded' THEN 'charged_without_booking'
	                   WHEN EXISTS (SELECT FROM provider_transactions e WHERE e.intent_id = t.intent_id AND e.intent_id <> '' AND e.category = 'charge'
	                                  AND (e.created_at, e.id) < (t.created_at, t.id)) THEN 'two_charges'
	                   WHEN b.status IN ('expired', 'failed') AND NOT EXISTS (SELECT FROM refunds r WHERE r.payment_id = o.id AND r.status <> 'failed')
	                        THEN 'charged_without_booking'
	                   WHEN (shown.amount, shown.currency) <> (o.amount, o.currency) THEN 'amount_differs' END AS kind) x
	 WHERE t.category = 'charge' AND t.created_at >= $1 AND t.created_at < $2 AND x.kind IS NOT NULL`

// theirFees are the fees that are not what was agreed. What gives money back costs nothing unless a schedule says so.
const theirFees = `
	SELECT 'fee_differs', t.id, p.booking_id, t.fee - agreed.fee, t.currency, t.created_at,
	       'the fee is {' || t.fee || ' ' || t.currency || '}, and {' || agreed.fee || ' ' || t.currency || '} was agreed'
	  FROM provider_transactions t
	  LEFT JOIN payments p ON p.provider_intent_id = nullif(t.intent_id, '')
	  LEFT JOIN LATERAL (
	       SELECT round(abs(t.amount) * s.basis_points / 10000.0)::bigint + s.fixed AS fee, s.step
	         FROM fee_schedules s WHERE s.currency = t.currency AND s.category = t.category AND s.from_at <= t.created_at
	        ORDER BY s.from_at DESC LIMIT 1) s ON true
	 CROSS JOIN LATERAL (
	       SELECT CASE WHEN s.fee IS NOT NULL THEN s.fee - s.fee % s.step
	                   WHEN t.category IN ('refund', 'refund_failure', 'dispute_reversal') THEN 0 END AS fee) agreed
	 WHERE t.created_at >= $1 AND t.created_at < $2 AND t.fee <> agreed.fee`

// theirRefunds are the provider's refunds, each with all of its movements: what is left of it must be what our row says. Where our row
// has moved on since the listing ends, nobody can tell yet.
const theirRefunds = `
	SELECT x.kind, t.source_id, p.booking_id, theirs.amount, theirs.currency, t.created_at, x.why
	  FROM provider_transactions t
	 CROSS JOIN LATERAL (
	       SELECT -sum(coalesce(a.presented_amount, a.amount))::bigint AS amount, min(coalesce(a.presented_currency, a.currency)) AS currency
	         FROM provider_transactions a WHERE a.source_id = t.source_id AND a.source_id <> '' AND a.category IN ('refund', 'refund_failure')) theirs
	  LEFT JOIN refunds r ON r.provider_refund_id = t.source_id
	  LEFT JOIN refunds named ON r.id IS NULL AND named.id = t.refund_ref
	  LEFT JOIN payments p ON p.provider_intent_id = nullif(t.intent_id, '')
	 CROSS JOIN LATERAL (SELECT CASE WHEN r.status <> 'failed' THEN r.amount ELSE 0 END AS amount) ours
	 CROSS JOIN LATERAL (
	       SELECT CASE WHEN r.id IS NULL AND theirs.amount <> 0 THEN 'refund_without_cause'
	                   WHEN r.reason = 'dashboard' AND theirs.amount <> 0 THEN 'refund_without_cause'
	                   WHEN ours.amount = 0 AND theirs.amount <> 0 THEN 'refund_without_cause'
	                   WHEN ours.amount <> 0 AND theirs.amount = 0 THEN 'refund_missing'
	                   WHEN (ours.amount, r.currency) <> (theirs.amount, theirs.currency) AND theirs.amount <> 0 THEN 'amount_differs' END AS kind,
	              CASE WHEN r.id IS NULL AND named.id IS NOT NULL THEN 'it names our refund ' || named.id || ', which was made by another'
	                   WHEN r.id IS NULL THEN 'our books have no such refund'
	                   WHEN r.reason = 'dashboard' AND theirs.amount <> 0 THEN 'somebody has made it by hand at the provider'
	                   WHEN ours.amount = 0 THEN 'our books say that it has failed'
	                   WHEN theirs.amount = 0 THEN 'the provider has taken it back, and our books say that it was made'
	                   ELSE 'the provider gave back {' || theirs.amount || ' ' || theirs.currency || '}, and our books have {' || ours.amount || ' ' || r.currency || '}' END AS why) x
	 CROSS JOIN provider_transactions_covered c
	 WHERE t.category IN ('refund', 'refund_failure') AND t.source_id <> '' AND t.created_at >= $1 AND t.created_at < $2 AND x.kind IS NOT NULL
	   AND (r.id IS NULL OR x.kind = 'refund_missing' OR c.windows @> tstzrange(t.created_at, greatest(t.created_at, coalesce(r.settled_at, r.updated_at)), '[]'))
	   AND NOT EXISTS (SELECT FROM provider_transactions e WHERE e.source_id = t.source_id AND e.source_id <> '' AND e.category IN ('refund', 'refund_failure')
	                      AND (e.created_at, e.id) < (t.created_at, t.id))`

// theirDisputes are the provider's disputes, likewise.
const theirDisputes = `
	SELECT x.kind, t.source_id, p.booking_id, theirs.amount, theirs.currency, t.created_at, x.why
	  FROM provider_transactions t
	 CROSS JOIN LATERAL (
	       SELECT -sum(coalesce(a.presented_amount, a.amount))::bigint AS amount, min(coalesce(a.presented_currency, a.currency)) AS currency
	         FROM provider_transactions a WHERE a.source_id = t.source_id AND a.source_id <> '' AND a.category IN ('dispute', 'dispute_reversal')) theirs
	  LEFT JOIN disputes d ON d.id = t.source_id
	  LEFT JOIN payments p ON p.provider_intent_id = nullif(t.intent_id, '')
	 CROSS JOIN LATERAL (SELECT CASE WHEN d.withdrawn THEN d.amount ELSE 0 END AS amount) ours
	 CROSS JOIN LATERAL (
	       SELECT CASE WHEN d.id IS NULL THEN 'dispute_unknown'
	                   WHEN theirs.amount <> ours.amount OR theirs.amount <> 0 AND theirs.currency <> d.currency THEN 'amount_differs' END AS kind,
	              CASE WHEN d.id IS NULL THEN 'our books have no such dispute'
	                   ELSE 'it has taken {' || theirs.amount || ' ' || theirs.currency || '} at the provider, and {' || ours.amount || ' ' || d.currency || '} by our books' END AS why) x
	 CROSS JOIN provider_transactions_covered c
	 WHERE t.category IN ('dispute', 'dispute_reversal') AND t.source_id <> '' AND t.created_at >= $1 AND t.created_at < $2 AND x.kind IS NOT NULL
	   AND (d.id IS NULL OR c.windows @> tstzrange(t.created_at, greatest(t.created_at, d.closed_at, d.updated_at), '[]'))
	   AND NOT EXISTS (SELECT FROM provider_transactions e WHERE e.source_id = t.source_id AND e.source_id <> '' AND e.category IN ('dispute', 'dispute_reversal')
	                      AND (e.created_at, e.id) < (t.created_at, t.id))`

// ourUnmet is what our book says has moved and the provider's whole listing lacks. What is young may yet come.
const ourUnmet = `
	SELECT CASE WHEN u.occurred_at > $3::timestamptz - $5::interval THEN 'late'
	            WHEN u.kind = 'charge' THEN 'confirmed_without_charge' WHEN u.kind = 'refund' THEN 'refund_missing' ELSE 'dispute_unknown' END,
	       u.about, u.booking_id, u.amount, u.currency, u.occurred_at,
	       CASE WHEN u.accepted THEN 'the provider has accepted it and not made it yet'
	            ELSE 'our books have this ' || u.kind || ', and no transaction of the provider''s shows it' END ||
	       CASE WHEN u.occurred_at > $3::timestamptz - $5::interval
	            THEN '; it is missing if none has come by ' || to_char((u.occurred_at + $5::interval) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC' ELSE '' END
	  FROM finance_unmet u
	 WHERE u.covered AND u.occurred_at >= $1 AND u.occurred_at < $2 AND u.occurred_at <= $3::timestamptz - $4::interval`

// theirPayouts are payouts that are not the sum of what went out with them, and those that have failed without bringing anything back,
// once everything until after we were told was listed.
const theirPayouts = `
	SELECT 'payout_differs', t.source_id, NULL::uuid, CASE WHEN x.sums THEN -t.net ELSE -t.net - rows.net END, t.currency, t.created_at,
	       CASE WHEN x.sums THEN 'the provider says that it is ' || replace(p.status, '_', ' ') || ', and nothing has come back'
	            ELSE 'it is {' || -t.net || ' ' || t.currency || '}, and the ' || rows.count || ' transactions that went out with it come to {' || rows.net || ' ' ||
	                 t.currency || '}' END
	  FROM provider_transactions t
	  JOIN payouts p ON p.id = t.source_id
	 CROSS JOIN LATERAL (
	       SELECT count(*) AS count, coalesce(sum(x.net), 0)::bigint AS net
	         FROM payout_transactions o JOIN provider_transactions x ON x.id = o.transaction_id WHERE o.payout_id = p.id) rows
	 CROSS JOIN LATERAL (SELECT NOT p.automatic OR p.rows_read_at IS NULL OR rows.net = -t.net AS sums) x
	 CROSS JOIN provider_payouts_covered c
	 WHERE t.category = 'payout' AND t.created_at >= $1 AND t.created_at < $2
	   AND (NOT x.sums OR p.status IN ('failed', 'canceled')
	                      AND NOT EXISTS (SELECT FROM provider_transactions b WHERE b.source_id = p.id AND b.source_id <> '' AND b.category = 'payout_reversal')
	                      AND c.windows @> tstzrange(t.created_at, greatest(t.created_at, p.asked_at) + $4::interval, '[]'))`

// theirReversals are what has come back of a payout, each told of by the newest that belongs to it: both together must be nothing.
const theirReversals = `
	SELECT 'payout_differs', t.id, NULL::uuid, x.net, t.currency, t.created_at,
	       'payout ' || t.source_id || ' has failed, and what went out and came back differ by {' || x.net || ' ' || t.currency || '}'
	  FROM provider_transactions t
	 CROSS JOIN LATERAL (
	       SELECT sum(a.net)::bigint AS net, bool_or(a.category = 'payout') AS listed, count(DISTINCT a.currency) AS currencies
	         FROM provider_transactions a WHERE a.source_id = t.source_id AND a.source_id <> '' AND a.category IN ('payout', 'payout_reversal')) x
	 WHERE t.category = 'payout_reversal' AND t.created_at >= $1 AND t.created_at < $2 AND x.listed AND (x.net <> 0 OR x.currencies > 1)
	   AND NOT EXISTS (SELECT FROM provider_transactions e WHERE e.source_id = t.source_id AND e.source_id <> '' AND e.category = 'payout_reversal'
	                      AND (e.created_at, e.id) > (t.created_at, t.id))`

// theirRest is what moved the balance and is of no kind that bookings have.
const theirRest = `
	SELECT 'unexplained', t.id, NULL::uuid, t.net, t.currency, t.created_at, 'the provider calls it ' || replace(t.category, '_', ' ') || ': no booking brings such a thing'
	  FROM provider_transactions t
	 WHERE t.category NOT IN ('charge', 'refund', 'refund_failure', 'dispute', 'dispute_reversal', 'payout', 'payout_reversal')
	   AND t.created_at >= $1 AND t.created_at < $2`

// ourEvents are events that the stream has not acknowledged.
const ourEvents = `
	SELECT 'event_unpublished', o.id::text, o.booking_id, NULL::bigint, NULL::text, o.created_at, 'the event ' || replace(o.event_type, '_', ' ') || ' has not reached the stream: it is ' || replace(o.status, '_', ' ')
	  FROM outbox o
	 WHERE o.kind = 'publish' AND o.status IN ('pending', 'in_doubt', 'parked') AND o.created_at >= $1 AND o.created_at < $2
	   AND o.created_at <= $3::timestamptz - $4::interval
	 UNION ALL
	SELECT 'event_unpublished', g.event_id::text, g.booking_id, NULL::bigint, NULL::text, g.occurred_at, 'the event ' || g.why
	  FROM stream_gaps g WHERE g.occurred_at >= $1 AND g.occurred_at < $2`

// findings are all of them.
func findings() string {
	all := `INSERT INTO findings (kind, about, booking_id, amount, currency, occurred_at, why) SELECT DISTINCT ON (kind, about) * FROM (`
	for i, statement := range []string{
		theirCharges, theirFees, theirRefunds, theirDisputes, ourUnmet, theirPayouts, theirReversals, theirRest, ourEvents,
	} {
		if i > 0 {
			all += "\nUNION ALL\n"
		}
		all += statement
	}
	return all + `) AS found ORDER BY kind, about, occurred_at`
}
