// Package httpapi is the API as its customers see it: JSON over HTTP, described by /openapi.json and /docs.
//
// The promise: whatever comes in is answered, and every refusal of ours is an RFC 9457 problem document with a stable
// code; an answer of 500 is a bug, and tells nothing of its cause. A request is refused as early as can be, in one
// order: who calls (401), what they may do (403), the idempotency key (400), the body (400, 413, 415, 422). Nothing is
// written before all of these have passed. Another client's booking is answered exactly like one that does not exist.
// The log has one line per request, with no body, no personal data, no key and no token in it.
//
// It owns no table, speaks no SQL and decides no business: that is package bookings' and package payments'.
//
// The refusals that net/http makes before any handler runs (a malformed request line, headers beyond the limit) are
// plain text; everything else is a problem document.
package httpapi
