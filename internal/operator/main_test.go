package operator_test

import (
	"testing"

	"holdfast/internal/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }
