// Package ledger is our own book of what has moved: append-only, in double entry.
//
// A row debits one account and credits another with one amount in one currency, so that the book cannot be out of balance. It
// has two origins. Of our own rows (payments, refunds, disputes) entries are made in the transaction that settles them
// ([Bring]); of the provider's transactions when they are stored ([Enter]). Both meet in the account clearing: what we say was
// taken or given back debits and credits it, and what the provider says does the opposite, so that clearing is zero for every
// payment on which both agree, to the unit, in the currency that the customer was shown.
//
// It owns ledger_entries and reads, by the view payment_movements, what the rows of payments say. Nothing here decides anything.
package ledger
