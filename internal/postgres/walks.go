package postgres

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/google/uuid"
)

// Walks turns keys to be looked up into walks along their index: keys that lie close to each other are read by one walk from the first to
// the last, with whatever lies between, and not by a descent through the index for each (which PostgreSQL spares from 17 on only).
// It returns where each walk begins and ends.
//
// Our ids are made of time (UUIDv7), and what people look at was mostly made at about one time. Keys that are not close cost a walk each,
// which is what looking them up costs.
func Walks(keys []uuid.UUID) (from, to []uuid.UUID) {
	const closeBy = 1000 // ms: so many rows may lie between two keys as are made in a second
	return walks(keys, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) },
		func(a, b uuid.UUID) bool { return milliseconds(b)-milliseconds(a) <= closeBy })
}

// WalksOfNumbers does the same for numbers from a sequence.
func WalksOfNumbers(keys []int64) (from, to []int64) {
	const closeBy = 100 // rows
	return walks(keys, cmp.Compare[int64], func(a, b int64) bool { return b-a <= closeBy })
}

// milliseconds is the time in a UUIDv7.
func milliseconds(id uuid.UUID) uint64 { return binary.BigEndian.Uint64(id[:8]) >> 16 }

func walks[K any](keys []K, compare func(a, b K) int, near func(a, b K) bool) (from, to []K) {
	sorted := slices.SortedFunc(slices.Values(keys), compare)
	from, to = []K{}, []K{}
	for _, key := range sorted {
		if last := len(to) - 1; last >= 0 && near(to[last], key) {
			to[last] = key
			continue
		}
		from, to = append(from, key), append(to, key)
	}
	return from, to
}
