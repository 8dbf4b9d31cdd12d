package stripesim

import (
	"maps"
	"slices"
)

// FaultNames are the names of all faults, in order.
func FaultNames() []string { return slices.Sorted(maps.Keys(faultSpecs())) }

// Operations are the names of all operations, in the order of the routes.
func (s *Simulator) Operations() []string {
	var names []string
	for _, r := range s.routes {
		names = append(names, r.operation)
	}
	return names
}
