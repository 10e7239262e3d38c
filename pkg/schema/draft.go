package schema

import (
	"fmt"
	"strings"
)

// A Draft is a version of JSON Schema. The zero value stands for any draft.
type Draft int

// The drafts that toolctl reads.
const (
	Draft4 Draft = iota + 1
	Draft6
	Draft7
	Draft2019 // 2019-09
	Draft2020 // 2020-12
)

// metaschemas are the values of "$schema", without scheme and empty fragment.
var metaschemas = [...]string{
	Draft4:    "json-schema.org/draft-04/schema",
	Draft6:    "json-schema.org/draft-06/schema",
	Draft7:    "json-schema.org/draft-07/schema",
	Draft2019: "json-schema.org/draft/2019-09/schema",
	Draft2020: "json-schema.org/draft/2020-12/schema",
}

// String returns the value of "$schema" that chooses the draft.
func (d Draft) String() string {
	switch {
	case d >= Draft2019:
		return "https://" + metaschemas[d]
	case d >= Draft4:
		return "http://" + metaschemas[d] + "#"
	}
	return fmt.Sprintf("Draft(%d)", int(d))
}

// DraftOf returns the draft of a "$schema" value, which may begin with http or https and may end with an
// empty fragment.
func DraftOf(schema string) (Draft, bool) {
	name, ok := MetaschemaName(strings.TrimSuffix(schema, "#"))
	for d := Draft4; ok && d <= Draft2020; d++ {
		if metaschemas[d] == name {
			return d, true
		}
	}
	return 0, false
}

// MetaschemaName returns a URL below json-schema.org/draft without its scheme. It returns false for other URLs.
func MetaschemaName(url string) (string, bool) {
	name, ok := strings.CutPrefix(url, "http://")
	if !ok {
		name, ok = strings.CutPrefix(url, "https://")
	}
	return name, ok && strings.HasPrefix(name, "json-schema.org/draft")
}
