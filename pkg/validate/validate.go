// Package validate is the one entry to JSON Schema: it compiles a schema once and
// checks documents against it often.
//
//	cache := validate.NewCache(validate.Options{})
//	schema := cache.Schema(raw, validate.Draft2020)
//	args, changed, violations, err := schema.Check(doc, true)
//
// # Engines
//
// "$schema" chooses the draft. Draft-04, -06 and -07 run on gojsonschema, 2019-09
// and 2020-12 on santhosh-tekuri/jsonschema. That engine knows all five drafts and also
// runs schemas of the older ones that gojsonschema cannot handle:
// patterns that Go's regexp refuses (lookaround), enum or const with numbers of
// more than 15 digits, references into a metaschema of another draft, and rules
// that are legal but never hold (minLength above maxLength). It also judges documents
// with more than 30,000 possible errors, for which gojsonschema needs too much memory.
//
// Most documents never reach an engine: [Schema.SurelyValid] finds them valid by their bytes.
//
// "format" is asserted. Violations read the same whichever engine found them.
//
// # Foreign schemas and documents
//
// Nothing is ever fetched: this package resolves references inside the document, and
// a reference that leads out of it is a violation of the schema. The metaschemas of the
// five drafts are built in.
//
// Schemas and documents may come from anyone, so each of these is an error with
// its place, in bounded time and memory: JSON that is too large or too deep;
// numbers beyond a double; a schema that leads back to itself without reading
// further input; one whose references multiply; patterns that are too large, or
// that backtrack for too long; a document whose check would take too long. A panic of an
// engine is an error and does not end the process.
package validate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"weak"

	"toolctl.dev/toolctl/pkg/schema"
)

// A Draft is a version of JSON Schema.
type Draft = schema.Draft

// The drafts that [Schema] understands.
const (
	Draft4    = schema.Draft4
	Draft6    = schema.Draft6
	Draft7    = schema.Draft7
	Draft2019 = schema.Draft2019
	Draft2020 = schema.Draft2020
)

// DefaultMaxSchemaBytes is the default maximum length of a schema, in bytes.
const DefaultMaxSchemaBytes = 1 << 20

// Options are the settings of a [Cache]. The zero value suits most uses.
type Options struct {
	// MaxSchemaBytes is the maximum length of a schema in bytes; 0 is [DefaultMaxSchemaBytes].
	MaxSchemaBytes int
	// Documents are schemas that other schemas may refer to, by their URLs without
	// fragment. They replace fetching.
	Documents map[string]json.RawMessage
	// FormatAnnotation leaves "format" unchecked, as is the default of 2019-09 and 2020-12. The
	// zero value checks it.
	FormatAnnotation bool
}

// A Cache shares compiled schemas: equal schemas share one [Schema] while a caller holds it.
// Nothing is evicted before that. A Cache may be used by many goroutines.
type Cache struct {
	options Options
	metas   [Draft2020 + 1]func() (*santhosh, error)

	mu      sync.Mutex
	schemas map[cacheKey]weak.Pointer[Schema] // under mu
}

type cacheKey struct {
	sum   [sha256.Size]byte
	draft Draft
}

// NewCache returns an empty cache.
func NewCache(options Options) *Cache {
	options.MaxSchemaBytes = cmp.Or(options.MaxSchemaBytes, DefaultMaxSchemaBytes)
	c := &Cache{options: options, schemas: map[cacheKey]weak.Pointer[Schema]{}}
	for d := Draft4; d <= Draft2020; d++ {
		c.metas[d] = sync.OnceValues(func() (*santhosh, error) { return newMetaschema(d) })
	}
	return c
}

// Schema returns the schema for a JSON text. White space does not matter. draft applies to a schema
// without "$schema"; 0 means [Draft2020]. Schema compiles nothing and cannot fail: see
// [Schema.Compile].
func (c *Cache) Schema(raw json.RawMessage, draft Draft) *Schema {
	if draft < Draft4 || draft > Draft2020 {
		draft = Draft2020
	}
	if len(raw) > c.options.MaxSchemaBytes {
		return &Schema{cache: c, raw: raw, draft: draft}
	}
	var compact bytes.Buffer
	compact.Grow(len(raw))
	if err := json.Compact(&compact, raw); err != nil {
		compact.Reset()
		compact.Write(raw) // Compile reports it
	}
	key := cacheKey{sha256.Sum256(compact.Bytes()), draft}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[key].Value(); s != nil {
		return s
	}
	s := &Schema{cache: c, raw: bytes.Clone(compact.Bytes()), draft: draft}
	c.schemas[key] = weak.Make(s)
	runtime.AddCleanup(s, c.forget, key)
	return s
}

// forget removes an entry whose schema is gone, unless a new schema has replaced it.
func (c *Cache) forget(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.schemas[key].Value() == nil {
		delete(c.schemas, key)
	}
}

// preload returns the decoded document of a URL, if it is in the options.
func (c *Cache) preload(url string) (any, bool, error) {
	raw, ok := c.options.Documents[strings.TrimSuffix(url, "#")]
	if !ok {
		return nil, false, nil
	}
	v, err := decode(raw, c.options.MaxSchemaBytes)
	return v, true, err
}
