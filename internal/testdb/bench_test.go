package testdb_test

import (
	"testing"

	"holdfast/internal/testdb"
)

// BenchmarkNew is what a database of its own costs a test.
func BenchmarkNew(b *testing.B) {
	testdb.New(b) // the server and its template are made once
	for b.Loop() {
		b.Run("one", func(b *testing.B) {
			testdb.New(b)
		})
	}
}
