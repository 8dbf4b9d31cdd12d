// Package client talks to Holdfast's API. It needs the standard library only.
//
// It sends one intention until it has a definite answer, always under one idempotency key, so that a retry never books
// twice. Sent again are: broken connections, answers that were cut or are none of the API's, 408, 429, 409
// request_in_progress and every 5xx, with exponential back-off and jitter, never sooner than Retry-After asks, and never
// past the deadline of the context. Never sent again are definite refusals (400, 401, 403, 404, 409 slot_unavailable,
// price_changed and idempotency_key_expired, 422).
//
// A call that changes something ends in one of four ways:
//
//   - nil: it was decided as asked, now or by an earlier send (Replayed);
//   - *UnknownError: no definite answer came in time. What was asked for may have happened. Go on with the same request
//     under its Key: the answer is then the one that was missed, or it happens now, once;
//   - *Problem: it was refused, and nothing was done for this key, unless the code is idempotency_key_expired or
//     idempotency_key_reused: those keys have been used before;
//   - any other error: nothing was sent.
//
// An *UnknownError may wrap a *Problem (a token that was revoked between two sends says nothing about the first), so
// ask for *UnknownError first.
package client
