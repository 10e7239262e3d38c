// Package plan decides what an apply and a delete change in a store. A backend reads the existing
// objects for it and writes the resulting plan, both in one transaction.
package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/parallel"
	"toolctl.dev/toolctl/pkg/store"
)

// Row is a record as a backend stores it: the indexed columns, and the object as two JSON texts.
type Row struct {
	Key                 v1.Key
	Set, UID            string
	Version, Generation int64
	Created, Updated    int64 // microseconds since 1970
	// Remote is the name on its MCP server of the tool that the object calls; "" for any other object. It is only set
	// in rows to write.
	Remote string
	// Manifest is the object as manifest JSON, Origin the rest of its header.
	Manifest, Origin []byte
}

// origin is the part of a header that is not in the manifest.
type origin struct {
	Source     v1.Source            `json:"source,omitzero"`
	Violations []v1.Violation       `json:"violations,omitempty"`
	Files      map[string][]byte    `json:"files,omitempty"`
	Fields     map[string]v1.Source `json:"fields,omitempty"`
	Layout     *v1.Layout           `json:"layout,omitempty"`
}

// encode fills the columns that depend on the object.
func encode(o v1.Object) (Row, error) {
	h := o.Head()
	r := Row{Key: h.Key(), Remote: RemoteOf(o)}
	var err error
	if r.Manifest, err = jsontext.Marshal(o); err != nil {
		return Row{}, fmt.Errorf("%s: cannot be stored: %w", r.Key, err)
	}
	if r.Origin, err = jsontext.Marshal(origin{h.Source, h.Violations, h.Files, h.Fields, h.Layout}); err != nil {
		return Row{}, fmt.Errorf("%s: cannot be stored: %w", r.Key, err)
	}
	return r, nil
}

// RemoteOf returns the name on its MCP server of the tool that an object calls; "" for any other object.
func RemoteOf(o v1.Object) string {
	if t, ok := o.(*v1.Tool); ok && t.Spec.MCP != nil && t.Mode() == v1.ModeMCP {
		return t.RemoteName()
	}
	return ""
}

// Decode returns the decoded record.
func (r *Row) Decode() (store.Record, error) {
	o := v1.NewObject(r.Key.Kind)
	if o == nil {
		return store.Record{}, fmt.Errorf("%w: %s: this toolctl does not support the kind", store.ErrDamaged, r.Key)
	}
	if err := json.Unmarshal(r.Manifest, o); err != nil {
		return store.Record{}, fmt.Errorf("%w: %s: %w", store.ErrDamaged, r.Key, err)
	}
	h := o.Head()
	if h.Key() != r.Key {
		return store.Record{}, fmt.Errorf("%w: %s: its row contains %s", store.ErrDamaged, r.Key, h.Key())
	}
	if !bytes.Equal(r.Origin, []byte("{}")) {
		var from origin
		if err := json.Unmarshal(r.Origin, &from); err != nil {
			return store.Record{}, fmt.Errorf("%w: %s: %w", store.ErrDamaged, r.Key, err)
		}
		h.Source, h.Violations, h.Files, h.Fields, h.Layout = from.Source, from.Violations, from.Files, from.Fields, from.Layout
	}
	return r.record(o), nil
}

func (r *Row) record(o v1.Object) store.Record {
	return store.Record{
		Object: o, ResourceVersion: r.Version, Generation: r.Generation, UID: r.UID, Set: r.Set,
		Created: time.UnixMicro(r.Created).UTC(), Updated: time.UnixMicro(r.Updated).UTC(),
	}
}

// DecodeAll decodes rows on all processors, because decoding is most of the time of a list.
func DecodeAll(rows []Row) ([]store.Record, error) {
	records, errs := make([]store.Record, len(rows)), make([]error, len(rows))
	parallel.Each(len(rows), func(i int) { records[i], errs[i] = rows[i].Decode() })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// Listed decodes the rows of a list.
func Listed(rows []Row, opts store.ListOptions) ([]store.Record, error) {
	records, err := DecodeAll(rows)
	if err != nil || opts.Layout {
		return records, err
	}
	for _, r := range records {
		r.Object.Head().Layout = nil
	}
	return records, nil
}

// sameBytes reports whether two rows hold the same object byte for byte.
func (r *Row) sameBytes(other *Row) bool {
	return bytes.Equal(r.Manifest, other.Manifest) && bytes.Equal(r.Origin, other.Origin)
}

// hasFiles returns false only if the manifest names no files.
func (r *Row) hasFiles() bool { return bytes.Contains(r.Origin, []byte(`"files":`)) }

// meaning is the part of a stored object that counts as a change when it differs.
type meaning struct {
	APIVersion string          `json:"apiVersion"`
	Metadata   v1.Metadata     `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	files      map[string][]byte
}

// compare reports whether two rows of one object have the same meaning, and whether their specs do. Positions of fields
// and the order of keys are ignored.
func compare(a, b *Row) (same, sameSpec bool, err error) {
	if a.sameBytes(b) {
		return true, true, nil
	}
	if bytes.Equal(a.Manifest, b.Manifest) && !a.hasFiles() && !b.hasFiles() {
		return true, true, nil
	}
	var m [2]meaning
	for i, r := range []*Row{a, b} {
		var from origin
		if err := json.Unmarshal(r.Manifest, &m[i]); err != nil {
			return false, false, fmt.Errorf("%w: %s: %w", store.ErrDamaged, r.Key, err)
		}
		if err := json.Unmarshal(r.Origin, &from); err != nil {
			return false, false, fmt.Errorf("%w: %s: %w", store.ErrDamaged, r.Key, err)
		}
		m[i].files = from.Files
	}
	sameSpec = m[0].APIVersion == m[1].APIVersion && sameJSON(m[0].Spec, m[1].Spec) &&
		maps.EqualFunc(m[0].files, m[1].files, bytes.Equal)
	same = sameSpec && maps.Equal(m[0].Metadata.Labels, m[1].Metadata.Labels) &&
		maps.Equal(m[0].Metadata.Annotations, m[1].Metadata.Annotations)
	return same, sameSpec, nil
}

// sameJSON compares two JSON texts. It compares the text of numbers, so that no digit is lost.
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
