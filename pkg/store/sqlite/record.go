package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/store"
)

// columns are the columns of a row, in the order of [row.fields].
const columns = "kind, namespace, name, set_name, uid, resource_version, generation, created, updated, manifest, origin"

// row is a record as the tables objects and changes hold it.
type row struct {
	key                 v1.Key
	set, uid            string
	version, generation int64
	created, updated    int64 // microseconds since 1970
	manifest, origin    []byte
}

func (r *row) fields() []any {
	return []any{&r.key.Kind, &r.key.Namespace, &r.key.Name, &r.set, &r.uid, &r.version, &r.generation, &r.created, &r.updated, &r.manifest, &r.origin}
}

func (r *row) values() []any {
	return []any{r.key.Kind, r.key.Namespace, r.key.Name, r.set, r.uid, r.version, r.generation, r.created, r.updated, r.manifest, r.origin}
}

// origin is what a header holds beside the manifest's own fields.
type origin struct {
	Source     v1.Source            `json:"source,omitzero"`
	Violations []v1.Violation       `json:"violations,omitempty"`
	Files      map[string][]byte    `json:"files,omitempty"`
	Fields     map[string]v1.Source `json:"fields,omitempty"`
	Layout     *v1.Layout           `json:"layout,omitempty"`
}

// encode fills the parts of a row that come from the object.
func encode(o v1.Object) (row, error) {
	h := o.Head()
	r := row{key: h.Key()}
	var err error
	if r.manifest, err = jsontext.Marshal(o); err != nil {
		return row{}, fmt.Errorf("%s: cannot be stored: %w", r.key, err)
	}
	if r.origin, err = jsontext.Marshal(origin{h.Source, h.Violations, h.Files, h.Fields, h.Layout}); err != nil {
		return row{}, fmt.Errorf("%s: cannot be stored: %w", r.key, err)
	}
	return r, nil
}

func (r *row) decode() (store.Record, error) {
	o := v1.NewObject(r.key.Kind)
	if o == nil {
		return store.Record{}, fmt.Errorf("%w: %s: a kind that this toolctl does not know", store.ErrDamaged, r.key)
	}
	if err := json.Unmarshal(r.manifest, o); err != nil {
		return store.Record{}, fmt.Errorf("%w: %s: %w", store.ErrDamaged, r.key, err)
	}
	h := o.Head()
	if h.Key() != r.key {
		return store.Record{}, fmt.Errorf("%w: %s: its row holds %s", store.ErrDamaged, r.key, h.Key())
	}
	if !bytes.Equal(r.origin, []byte("{}")) {
		var from origin
		if err := json.Unmarshal(r.origin, &from); err != nil {
			return store.Record{}, fmt.Errorf("%w: %s: %w", store.ErrDamaged, r.key, err)
		}
		h.Source, h.Violations, h.Files, h.Fields, h.Layout = from.Source, from.Violations, from.Files, from.Fields, from.Layout
	}
	return r.record(o), nil
}

func (r *row) record(o v1.Object) store.Record {
	return store.Record{
		Object: o, ResourceVersion: r.version, Generation: r.generation, UID: r.uid, Set: r.set,
		Created: time.UnixMicro(r.created).UTC(), Updated: time.UnixMicro(r.updated).UTC(),
	}
}

// decodeAll decodes rows on all processors: it is most of the time of a list.
func decodeAll(rows []row) ([]store.Record, error) {
	const chunk = 64 // rows that are worth a goroutine
	records := make([]store.Record, len(rows))
	errs := make([]error, (len(rows)+chunk-1)/chunk)
	work := func(i int) {
		for j := i * chunk; j < min(len(rows), (i+1)*chunk); j++ {
			if records[j], errs[i] = rows[j].decode(); errs[i] != nil {
				return
			}
		}
	}
	var wg sync.WaitGroup
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range errs {
		if len(errs) == 1 {
			work(i)
			break
		}
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			work(i)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// sameBytes reports whether two rows hold the same object to the last byte.
func (r *row) sameBytes(other *row) bool {
	return bytes.Equal(r.manifest, other.manifest) && bytes.Equal(r.origin, other.origin)
}

// meaning is the part of a stored object whose change counts as a change.
type meaning struct {
	APIVersion string          `json:"apiVersion"`
	Metadata   v1.Metadata     `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	files      map[string][]byte
}

// compare tells whether two rows of one object mean the same, and whether their
// specs do. The places of fields and the order of keys mean nothing.
func compare(a, b *row) (same, sameSpec bool, err error) {
	if a.sameBytes(b) {
		return true, true, nil
	}
	var m [2]meaning
	for i, r := range []*row{a, b} {
		var from origin
		if err := json.Unmarshal(r.manifest, &m[i]); err != nil {
			return false, false, fmt.Errorf("%w: %s: %w", store.ErrDamaged, r.key, err)
		}
		if err := json.Unmarshal(r.origin, &from); err != nil {
			return false, false, fmt.Errorf("%w: %s: %w", store.ErrDamaged, r.key, err)
		}
		m[i].files = from.Files
	}
	sameSpec = m[0].APIVersion == m[1].APIVersion && sameJSON(m[0].Spec, m[1].Spec) &&
		maps.EqualFunc(m[0].files, m[1].files, bytes.Equal)
	same = sameSpec && maps.Equal(m[0].Metadata.Labels, m[1].Metadata.Labels) &&
		maps.Equal(m[0].Metadata.Annotations, m[1].Metadata.Annotations)
	return same, sameSpec, nil
}

// sameJSON compares two JSON texts. Numbers are the same when they are written
// the same, so that no digit is lost in comparing.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var v [2]any
	for i, text := range [][]byte{a, b} {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		if dec.Decode(&v[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(v[0], v[1])
}
