package diff

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
)

// Field is one value that differs. Old is absent if there was no value before, and New if there is no
// value after the change. A file that the manifest names is a field /files/PATH whose values are its
// digests.
type Field struct {
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
	// Cut reports that a value was too long and is not shown in full.
	Cut bool `json:"cut,omitempty"`
}

const (
	// maxFields is the maximum number of fields of one change; the last field says how many are left
	// out.
	maxFields = 200
	// maxValue is the maximum length of a value that is shown in full.
	maxValue = 400
)

// fieldsOf returns the differing fields, sorted by path. For a new or deleted object it returns each
// field of spec.
func fieldsOf(p Pair) ([]Field, error) {
	if same, err := sameText(p); same || err != nil {
		return nil, err
	}
	before, err := meaningOf(p.Before)
	if err != nil {
		return nil, err
	}
	after, err := meaningOf(p.After)
	if err != nil {
		return nil, err
	}
	if p.Before != nil && p.After != nil && reflect.DeepEqual(before, after) {
		return nil, nil
	}
	w := fieldWalk{whole: p.Before == nil || p.After == nil}
	shown := [2]any{before, after}
	for i, o := range []v1.Object{p.Before, p.After} {
		if o == nil {
			continue
		}
		masked, err := redact.Manifest(o)
		if err != nil {
			return nil, err
		}
		if masked != o {
			masked.Head().Files = o.Head().Files
			if shown[i], err = meaningOf(masked); err != nil {
				return nil, err
			}
		}
	}
	w.walk("", before, after, shown[0], shown[1])
	if w.whole {
		w.fields = slices.DeleteFunc(w.fields, func(f Field) bool { return f.Path == "/apiVersion" })
	}
	if more := len(w.fields) - maxFields; more > 0 {
		w.fields = append(w.fields[:maxFields:maxFields], Field{Path: "", New: encode(fmt.Sprintf("… and %d more", more)), Cut: true})
	}
	return w.fields, nil
}

// sameText reports whether both objects exist and have the same text. Most pairs do, and need no further
// comparison.
func sameText(p Pair) (bool, error) {
	if p.Before == nil || p.After == nil || len(p.Before.Head().Files) > 0 || len(p.After.Head().Files) > 0 {
		return false, nil
	}
	var texts [2][]byte
	for i, o := range []v1.Object{p.Before, p.After} {
		var err error
		if texts[i], err = json.Marshal(o); err != nil {
			return false, fmt.Errorf("%s: %w", o.Head().Key(), err)
		}
	}
	return bytes.Equal(texts[0], texts[1]), nil
}

// absent stands for a missing value.
type absent struct{}

func isAbsent(v any) bool { _, none := v.(absent); return none }

// meaningOf returns the parts of an object that count as a change if they differ: all but its place in a
// file and the order of its keys.
func meaningOf(o v1.Object) (any, error) {
	if o == nil {
		return absent{}, nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Head().Key(), err)
	}
	doc, err := decodeAll(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Head().Key(), err)
	}
	h := o.Head()
	m := map[string]any{"apiVersion": h.APIVersion, "spec": doc["spec"]}
	meta := map[string]any{}
	for name, values := range map[string]map[string]string{"labels": h.Metadata.Labels, "annotations": h.Metadata.Annotations} {
		if len(values) > 0 {
			all := map[string]any{}
			for k, v := range values {
				all[k] = v
			}
			meta[name] = all
		}
	}
	m["metadata"] = meta
	files := map[string]any{}
	for name, data := range h.Files {
		sum := sha256.Sum256(data)
		files[name] = fmt.Sprintf("sha256:%s (%s)", hex.EncodeToString(sum[:8]), clip.Count(len(data), "byte"))
	}
	m["files"] = files
	return m, nil
}

func decodeAll(raw []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc map[string]any
	return doc, dec.Decode(&doc)
}

// fieldWalk compares two documents side by side. shown are the same documents with secrets masked.
type fieldWalk struct {
	whole  bool // one of the two is absent
	fields []Field
}

func (w *fieldWalk) walk(path string, a, b, shownA, shownB any) {
	am, aIsMap := a.(map[string]any)
	bm, bIsMap := b.(map[string]any)
	if aIsMap && bIsMap || (aIsMap && isAbsent(b) || bIsMap && isAbsent(a)) && w.opens(path) {
		sa, _ := shownA.(map[string]any)
		sb, _ := shownB.(map[string]any)
		names := maps.Clone(am)
		if names == nil {
			names = map[string]any{}
		}
		maps.Copy(names, bm)
		for _, k := range slices.Sorted(maps.Keys(names)) {
			w.walk(v1.Pointer(path, k), member(am, k), member(bm, k), member(sa, k), member(sb, k))
		}
		return
	}
	al, aIsList := a.([]any)
	bl, bIsList := b.([]any)
	if aIsList && bIsList && (!plainList(al) || !plainList(bl)) {
		sa, _ := shownA.([]any)
		sb, _ := shownB.([]any)
		for i := range max(len(al), len(bl)) {
			w.walk(path+"/"+strconv.Itoa(i), item(al, i), item(bl, i), item(sa, i), item(sb, i))
		}
		return
	}
	if reflect.DeepEqual(a, b) {
		return
	}
	f := Field{Path: path}
	f.Old = f.show(shownA)
	f.New = f.show(shownB)
	w.fields = append(w.fields, f)
}

// opens reports whether a block that only one side has is shown field by field. Schemas and values are
// shown in one piece, and so are the fields of a new or deleted object.
func (w *fieldWalk) opens(path string) bool {
	if w.whole {
		return strings.Count(path, "/") < 2
	}
	for _, whole := range []string{"/input_schema", "/output_schema", "/input", "/output", "/parameters", "/mock_result", "/static_body"} {
		if strings.Contains(path+"/", whole+"/") {
			return false
		}
	}
	return true
}

func member(m map[string]any, key string) any {
	if v, ok := m[key]; ok {
		return v
	}
	return absent{}
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return absent{}
}

// plainList reports whether a list contains no objects and no lists.
func plainList(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool {
		switch v.(type) {
		case map[string]any, []any:
			return true
		}
		return false
	})
}

// show returns a value with a bounded length.
func (f *Field) show(v any) json.RawMessage {
	if isAbsent(v) {
		return nil
	}
	raw := jsontext.Of(hideSecrets(v, ""))
	if len(raw) <= maxValue {
		return raw
	}
	f.Cut = true
	text := string(raw)
	if s, ok := v.(string); ok {
		text = s
	}
	return encode(clip.Bytes(text, maxValue))
}

// hideSecrets masks texts that look like secrets.
func hideSecrets(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, sub := range v {
			out[k] = hideSecrets(sub, k)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, sub := range v {
			out[i] = hideSecrets(sub, key)
		}
		return out
	case string:
		if kind, _ := redact.WrittenOut(v, key); kind != "" {
			return "***"
		}
	}
	return v
}
