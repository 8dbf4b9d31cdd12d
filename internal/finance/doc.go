// Package finance compares our books with the provider's, transaction by transaction, and keeps what does not match on a list that
// gets shorter (G8).
//
// The provider's transactions come from its API ([Desk.Read]) or from its reports ([Desk.Import]); either way a window of time counts
// as covered only once it was listed whole, and only what is covered is matched ([Desk.Match]): an incomplete listing accuses nobody.
// Matching is by the ids that we have put into the provider's objects, in the database, a day at a time; it may be done twice, by
// two at once, and be killed half-way. What it finds are [Item]s, which close by themselves when a later run explains them.
//
// It owns payouts, payout_transactions, reconciliation_runs, reconciliation_items, finance_periods, fee_schedules,
// stream_gaps, provider_read_budget, finance_days_entered and finance_days_looked. It reads the tables of others, and writes none of them.
package finance
