// Package paymentstest holds the suite that every payments.Gateway must pass. It is a suite and no fake: it runs on the
// real adapter, over real HTTP, and judges what the adapter says by what the provider's journal and ledger say.
//
// Each claim is a subtest: what the provider does in health (protocol.go), what a send says under each fault, for each
// operation (faults.go, and on kept-alive connections reused.go), and what a read says (reads.go).
package paymentstest
