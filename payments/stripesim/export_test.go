package stripesim

import (
	"maps"
	"slices"
)

// FaultNames are the names of all faults, in order.
func FaultNames() []string { return slices.Sorted(maps.Keys(faultSpecs())) }

// Writes are the names of the operations that write, sorted.
func (s *Simulator) Writes() []string {
	var names []string
	for _, r := range s.routes {
		if r.method == "POST" {
			names = append(names, r.operation)
		}
	}
	slices.Sort(names)
	return names
}

// Operations are the names of all operations, in the order of the routes.
func (s *Simulator) Operations() []string {
	var names []string
	for _, r := range s.routes {
		names = append(names, r.operation)
	}
	return names
}
