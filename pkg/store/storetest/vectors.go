package storetest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"toolctl.dev/toolctl/pkg/store"
)

// testVectors: every process reads the vectors that another one has stored.
func testVectors(t *testing.T, backend Backend) {
	disk := backend.New(t)
	st, other := open(t, disk), open(t, disk)
	put := func(vectors map[string][]byte) {
		t.Helper()
		if err := st.PutVectors(t.Context(), vectors); err != nil {
			t.Fatal(err)
		}
	}
	check := func(keys []string, want map[string][]byte) {
		t.Helper()
		got, err := other.Vectors(t.Context(), keys)
		if err != nil || len(got) != len(want) {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
		for k := range want {
			if !bytes.Equal(got[k], want[k]) {
				t.Errorf("%s is %v, want %v", k, got[k], want[k])
			}
		}
	}
	check(nil, nil)
	check([]string{"a"}, nil)
	put(nil)
	put(map[string][]byte{"a": {0, 255}, "b": {1}})
	check([]string{"a", "none", "b"}, map[string][]byte{"a": {0, 255}, "b": {1}})
	put(map[string][]byte{"a": {2}})
	check([]string{"a"}, map[string][]byte{"a": {2}})

	var both sync.WaitGroup
	for i, st := range []store.Store{st, other} {
		both.Go(func() {
			for n := range 5 {
				many := map[string][]byte{}
				for k := range 50 {
					many[fmt.Sprint("many", k)] = []byte{byte(i), byte(n)}
				}
				if err := st.PutVectors(t.Context(), many); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()

	tooMany := make([]string, store.MaxVectorBatch+1)
	if _, err := st.Vectors(t.Context(), tooMany); err == nil {
		t.Error("too many vectors were read at once")
	}
	vectors := map[string][]byte{}
	for i := range tooMany {
		vectors[fmt.Sprint(i)] = []byte{1}
	}
	if err := st.PutVectors(t.Context(), vectors); err == nil {
		t.Error("too many vectors were written at once")
	}
}

// testVectorBounds: a store keeps the newest vectors.
func testVectorBounds(t *testing.T, backend Backend) {
	st := backend.open(t)
	key := func(batch, i int) string { return fmt.Sprintf("%d-%d", batch, i) }
	const batches = store.MaxVectors/store.MaxVectorBatch + 1
	for b := range batches {
		vectors := make(map[string][]byte, store.MaxVectorBatch)
		for i := range store.MaxVectorBatch {
			vectors[key(b, i)] = []byte{1}
		}
		if err := st.PutVectors(t.Context(), vectors); err != nil {
			t.Fatal(err)
		}
	}
	for b, want := range map[int]int{0: 0, 1: 1, batches - 1: 1} {
		got, err := st.Vectors(t.Context(), []string{key(b, 7)})
		if err != nil || len(got) != want {
			t.Errorf("%d vectors of batch %d are kept, want %d: %v", len(got), b, want, err)
		}
	}
}
