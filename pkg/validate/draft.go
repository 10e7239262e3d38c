package validate

import (
	"fmt"
	"strings"
)

// A Draft is a version of JSON Schema.
type Draft int

// The drafts that [Schema] understands. Draft-04, -06 and -07 run on
// gojsonschema, the two later ones on santhosh-tekuri/jsonschema.
const (
	Draft4 Draft = iota + 1
	Draft6
	Draft7
	Draft2019 // 2019-09
	Draft2020 // 2020-12
)

// metaschemas are the values of "$schema", without scheme and empty fragment.
var metaschemas = map[Draft]string{
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

// draftOf returns the draft of a "$schema" value; both http and https are
// taken, with and without the empty fragment.
func draftOf(schema string) (Draft, bool) {
	name, ok := metaschemaName(strings.TrimSuffix(schema, "#"))
	if !ok {
		return 0, false
	}
	for d, m := range metaschemas {
		if m == name {
			return d, true
		}
	}
	return 0, false
}

// metaschemaName returns what follows the scheme of a URL under json-schema.org.
func metaschemaName(url string) (string, bool) {
	name, ok := strings.CutPrefix(url, "http://")
	if !ok {
		name, ok = strings.CutPrefix(url, "https://")
	}
	return name, ok && strings.HasPrefix(name, "json-schema.org/draft")
}

func supportedDrafts() string {
	var names []string
	for d := Draft4; d <= Draft2020; d++ {
		names = append(names, d.String())
	}
	return strings.Join(names, ", ")
}
