// Package history makes up what a provider's account and our own books went through, for tests of the matching: any number of
// transactions in three currencies of settlement and a fourth that is exchanged, with refunds, refunds that fail, disputes, payouts and some that fail.
//
// What does not match is decided, and written down, before anything else is made ([Expected]); everything else matches. It imports
// nothing of ours, so that it and the matcher cannot err alike: amounts, fees and sums are reckoned here by rules of its own.
//
// Of one configuration it makes the same files each time: expected.json, totals.json; ours/*.csv for COPY; theirs/transactions.rec for
// [Books], which pages like the provider; theirs/*.csv as the provider's reports.
package history
