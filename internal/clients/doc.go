// Package clients knows who may call the API, and with what.
//
// The promise: a token is shown once, to whoever made it, and stored as its SHA-256 only, so that a stolen copy of the
// database opens nothing. A revoked token is refused by the next request: nothing is cached. Whether a token has
// expired is judged by the database's clock, like every deadline. To the outside, an unknown, expired or revoked token
// are one and the same refusal.
//
// A session of the operators' pages stands for the token that began it, and ends with it.
//
// It owns the tables clients, api_tokens and console_sessions. It does not limit rates and knows nothing of HTTP.
package clients
