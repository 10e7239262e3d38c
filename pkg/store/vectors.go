package store

import (
	"context"
	"fmt"
)

// MaxVectors is the maximum number of vectors that a store keeps.
const MaxVectors = 100_000

// MaxVectorBatch is the maximum number of vectors that are read or written together.
const MaxVectorBatch = 1000

// Vectors keep what a model returned for texts, so that each text is sent to the model once. They are a cache: the newest
// MaxVectors are kept, and a copy of a store has none.
type Vectors interface {
	// Vectors returns the stored vectors by their keys.
	Vectors(ctx context.Context, keys []string) (map[string][]byte, error)
	// PutVectors stores vectors by their keys. They replace earlier ones with the same keys.
	PutVectors(ctx context.Context, vectors map[string][]byte) error
}

// CheckVectorBatch returns an error for a number of vectors that is too large. Backends call it.
func CheckVectorBatch(n int) error {
	if n > MaxVectorBatch {
		return fmt.Errorf("%d vectors at once: expected at most %d", n, MaxVectorBatch)
	}
	return nil
}
