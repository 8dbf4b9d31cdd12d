// Package testdb gives each test a real PostgreSQL database of its own.
//
// The promise: [New] returns a fresh database at the newest schema within some tens of milliseconds, which no other
// test sees and which is gone after the test. A test without a database fails; it is skipped only under -short.
//
// A package that uses it says so once, which also checks that its tests leak no goroutine:
//
//	func TestMain(m *testing.M) { testdb.Main(m) }
//
// The server is the one that $HOLDFAST_TEST_DATABASE_URL names (an administrator's URL). `make test` starts one for
// the whole run by cmd/withdb; without it each package starts a private one when its first test asks.
//
// Databases are clones of a template, migrated once per schema and server under an advisory lock: packages are tested
// in parallel by processes that know nothing of each other. With HOLDFAST_KEEP_DB=1 the database of a failed test is
// kept; its URL is printed in any case.
package testdb
