package finance

// The report's figures, each of [$1, $2).

// reportBalances has both ends of each balance by our ledger, and what happened between them by the provider's transactions, so that
// the one checks the other.
const reportBalances = `
	SELECT coalesce(l.currency, t.currency) AS currency, coalesce(l.opening, 0)::bigint AS opening, coalesce(t.activity, 0)::bigint AS activity,
	       coalesce(t.payouts, 0)::bigint AS payouts, coalesce(l.closing, 0)::bigint AS closing
	  FROM (SELECT currency, sum(signed) FILTER (WHERE occurred_at < $1) AS opening, sum(signed) AS closing
	          FROM (SELECT currency, occurred_at, CASE WHEN debit = 'provider_balance' THEN amount ELSE -amount END AS signed
	                  FROM ledger_entries WHERE origin = 'provider' AND 'provider_balance' IN (debit, credit) AND occurred_at < $2) AS e
	         GROUP BY currency) AS l
	  FULL JOIN (SELECT currency, sum(net) FILTER (WHERE category NOT IN ('payout', 'payout_reversal')) AS activity,
	                    sum(net) FILTER (WHERE category IN ('payout', 'payout_reversal')) AS payouts
	               FROM provider_transactions WHERE created_at >= $1 AND created_at < $2 GROUP BY currency) AS t ON t.currency = l.currency
	 ORDER BY 1`

const reportCategories = `
	SELECT t.category, t.currency, count(*) AS count, sum(t.amount)::bigint AS amount, sum(t.fee)::bigint AS fee, sum(t.net)::bigint AS net,
	       coalesce(sum(l.net), 0)::bigint AS ledger
	  FROM provider_transactions t
	  LEFT JOIN (SELECT about, sum(CASE WHEN debit = 'provider_balance' THEN amount ELSE -amount END) AS net
	               FROM ledger_entries WHERE origin = 'provider' AND 'provider_balance' IN (debit, credit) AND occurred_at >= $1 AND occurred_at < $2
	              GROUP BY about) AS l ON l.about = t.id
	 WHERE t.created_at >= $1 AND t.created_at < $2
	 GROUP BY t.category, t.currency ORDER BY t.currency, t.category`

const reportSides = `
	SELECT family, currency, sum(ours)::bigint AS ours, sum(theirs)::bigint AS theirs, sum(ours - theirs)::bigint AS difference
	  FROM (SELECT CASE WHEN kind LIKE 'charge%' THEN 'charges' WHEN kind LIKE 'refund%' THEN 'refunds' ELSE 'disputes' END AS family, currency,
	               CASE WHEN debit = 'clearing' THEN amount ELSE -amount END AS ours, 0 AS theirs
	          FROM ledger_entries WHERE origin = 'book' AND occurred_at >= $1 AND occurred_at < $2
	         UNION ALL
	        SELECT CASE WHEN category = 'charge' THEN 'charges' WHEN category LIKE 'refund%' THEN 'refunds' ELSE 'disputes' END,
	               coalesce(presented_currency, currency), 0, coalesce(presented_amount, amount)
	          FROM provider_transactions
	         WHERE created_at >= $1 AND created_at < $2 AND category IN ('charge', 'refund', 'refund_failure', 'dispute', 'dispute_reversal')) AS x
	 GROUP BY family, currency ORDER BY currency, family`

const reportPayouts = `
	SELECT t.source_id AS id, t.currency, -t.net AS amount, rows.count AS rows, rows.net AS rows_net, coalesce(p.status, 'not read') AS status,
	       t.created_at AS created, coalesce(p.arrival_at, t.available_at) AS arrival
	  FROM provider_transactions t LEFT JOIN payouts p ON p.id = t.source_id
	 CROSS JOIN LATERAL (
	       SELECT count(*) AS count, coalesce(sum(x.net), 0)::bigint AS net
	         FROM payout_transactions o JOIN provider_transactions x ON x.id = o.transaction_id WHERE o.payout_id = t.source_id) AS rows
	 WHERE t.category = 'payout' AND t.created_at >= $1 AND t.created_at < $2 ORDER BY t.created_at, t.source_id`

// reportPending is what nobody can judge yet; $3 is the lag.
const reportPending = `
	SELECT u.kind, u.about, u.amount, u.currency, u.occurred_at,
	       CASE WHEN NOT u.covered THEN 'not all of the time between the booking and this was listed from the provider'
	            ELSE 'it has only just happened: the provider''s transaction may not be there yet' END AS why
	  FROM finance_unmet u
	 WHERE u.occurred_at >= $1 AND u.occurred_at < $2 AND (NOT u.covered OR u.occurred_at > clock_timestamp() - $3::interval)
	 UNION ALL
	SELECT 'payout', t.source_id, -t.net, t.currency, t.created_at, 'what went out with it was not listed from the provider'
	  FROM provider_transactions t LEFT JOIN payouts p ON p.id = t.source_id
	 WHERE t.category = 'payout' AND t.created_at >= $1 AND t.created_at < $2 AND coalesce(p.automatic, true) AND p.rows_read_at IS NULL
	 UNION ALL
	SELECT 'payout', t.id, t.net, t.currency, t.created_at, 'it brings back a payout that was not listed from the provider'
	  FROM provider_transactions t
	 WHERE t.category = 'payout_reversal' AND t.created_at >= $1 AND t.created_at < $2
	   AND NOT EXISTS (SELECT FROM provider_transactions p WHERE p.source_id = t.source_id AND p.source_id <> '' AND p.category = 'payout')
	 UNION ALL
	SELECT 'payout', p.id, p.amount, p.currency, t.created_at, 'it is ' || p.status || ', on its way to the bank until ' || to_char(p.arrival_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')
	  FROM provider_transactions t JOIN payouts p ON p.id = t.source_id
	 WHERE t.category = 'payout' AND t.created_at >= $1 AND t.created_at < $2 AND p.status IN ('pending', 'in_transit')
	 ORDER BY occurred_at, about LIMIT 10000`
