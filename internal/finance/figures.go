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

// reportPending is what nobody can judge yet; $3 is the lag. until is when that ends by itself, if it does.
const reportPending = `
	SELECT u.kind, u.about, u.booking_id, u.amount, u.currency, u.occurred_at, CASE WHEN u.covered THEN u.occurred_at + $3::interval END AS until,
	       CASE WHEN u.covered THEN 'it has only just happened: the provider''s transaction may not be there yet'
	            ELSE 'whether the provider has it shows only once its transactions from ' || to_char(p.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') ||
	                 ' on, when the booking was made, were read or imported' END AS why
	  FROM finance_unmet u JOIN payments p ON p.id = u.payment_id
	 WHERE u.occurred_at >= $1 AND u.occurred_at < $2 AND (NOT u.covered OR u.occurred_at > clock_timestamp() - $3::interval)
	 UNION ALL
	SELECT 'payout', t.source_id, NULL, -t.net, t.currency, t.created_at, NULL,
	       'what went out with it was not listed from the provider: the reconciler reads that by itself while it runs, or import the payout reconciliation report'
	  FROM provider_transactions t LEFT JOIN payouts p ON p.id = t.source_id
	 WHERE t.category = 'payout' AND t.created_at >= $1 AND t.created_at < $2 AND coalesce(p.automatic, true) AND p.rows_read_at IS NULL
	 UNION ALL
	SELECT 'payout', t.id, NULL, t.net, t.currency, t.created_at, NULL, 'it brings back a payout that was not listed from the provider'
	  FROM provider_transactions t
	 WHERE t.category = 'payout_reversal' AND t.created_at >= $1 AND t.created_at < $2
	   AND NOT EXISTS (SELECT FROM provider_transactions p WHERE p.source_id = t.source_id AND p.source_id <> '' AND p.category = 'payout')
	 UNION ALL
	SELECT 'payout', p.id, NULL, p.amount, p.currency, t.created_at, p.arrival_at,
	       CASE WHEN p.arrival_at > clock_timestamp() THEN 'it is on its way to the bank'
	            ELSE 'it should be at the bank by now, and when it was last looked up the provider called it ' || replace(p.status, '_', ' ') ||
	                 ': look at the bank''s statement' END
	  FROM provider_transactions t JOIN payouts p ON p.id = t.source_id
	 WHERE t.category = 'payout' AND t.created_at >= $1 AND t.created_at < $2 AND p.status IN ('pending', 'in_transit')
	 ORDER BY occurred_at, about LIMIT 10001`
