package diff

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/diff/internal/solve"
	"toolctl.dev/toolctl/pkg/validate"
)

// Class is what a change means for those who rely on the old side.
type Class string

// The classes, the mildest first.
const (
	// Neutral: only titles, descriptions, examples and other annotations changed.
	Neutral Class = "neutral"
	// Compatible: a proof shows that everything that worked still works.
	Compatible Class = "compatible"
	// Unknown: neither a proof nor a witness was found.
	Unknown Class = "unknown"
	// Risky: only properties that an open object does not declare stop working.
	Risky Class = "risky"
	// Looser: a policy, a hint or consent allows more than before.
	Looser Class = "looser"
	// Tighter: less is allowed than before; the witness of a policy is a call that was allowed.
	Tighter Class = "tighter"
	// Breaking: the witness worked before and no longer does.
	Breaking Class = "breaking"
)

var classes = []Class{Neutral, Compatible, Unknown, Risky, Looser, Tighter, Breaking}

// Worse reports whether a class needs more care than another.
func (c Class) Worse(than Class) bool { return slices.Index(classes, c) > slices.Index(classes, than) }

// Direction is the side that must accept documents of the other one.
type Direction string

const (
	// Input is a schema of arguments: the new schema must accept what the old one accepts.
	Input Direction = "input"
	// Output is a schema of results: readers of the old schema must accept results of the new one.
	Output Direction = "output"
)

// SchemaChange is the change from one schema to another.
type SchemaChange struct {
	Class Class `json:"class"`
	// Reason is one sentence.
	Reason string `json:"reason"`
	// Pointer is the JSON pointer (RFC 6901) of the change in the new schema, or in the
	// old one if the place no longer exists.
	Pointer string `json:"pointer"`
	// Witness is a document that worked before and no longer does. Only breaking and risky
	// changes have one.
	Witness json.RawMessage `json:"witness,omitempty"`
	// Coerced reports that coercion makes arguments such as the witness fit the new schema.
	Coerced bool `json:"coerced,omitempty"`
}

// Checker compares schemas. It may be used by many goroutines.
type Checker struct {
	cache   *validate.Cache
	formats *formats
}

// NewChecker makes a Checker.
func NewChecker() *Checker {
	cache := validate.NewCache(validate.Options{})
	return &Checker{cache: cache, formats: &formats{cache: cache, schemas: map[string]*format{}}}
}

// Schemas classifies the change of a schema. draft is that of a schema without
// "$schema". The error is that of a schema that cannot be compiled, with the place in it.
func (c *Checker) Schemas(before, after json.RawMessage, as Direction, draft validate.Draft) (SchemaChange, error) {
	return c.schemas(before, after, as, draft, true)
}

// schemas is Schemas; coerces tells whether the arguments of callers are coerced.
func (c *Checker) schemas(before, after json.RawMessage, as Direction, draft validate.Draft, coerces bool) (SchemaChange, error) {
	var sides [2]*side
	for i, raw := range []json.RawMessage{before, after} {
		s, err := c.side(raw, draft)
		if err != nil {
			return SchemaChange{}, fmt.Errorf("%s schema: %w", [2]string{"old", "new"}[i], err)
		}
		sides[i] = s
	}
	changed := changes("", sides[0].raw, sides[1].raw)
	if len(changed) == 0 {
		return SchemaChange{Class: Neutral, Reason: "nothing changed"}, nil
	}
	if reflect.DeepEqual(solve.Plain(sides[0].raw), solve.Plain(sides[1].raw)) {
		return SchemaChange{Class: Neutral, Reason: "only annotations changed", Pointer: changed[0]}, nil
	}
	changed = changes("", solve.Plain(sides[0].raw), solve.Plain(sides[1].raw))
	gives, takes := sides[0], sides[1]
	if as == Output {
		gives, takes = takes, gives
	}
	change := c.compare(gives, takes)
	change.describe(as, takes, changed, coerces)
	return change, nil
}

// compare searches for a document that gives accepts and takes does not.
func (c *Checker) compare(gives, takes *side) SchemaChange {
	query := solve.Query{Fit: gives.read(), Break: takes.read(), Format: c.formats.has, Declared: true}
	declared, answer := solve.Find(query)
	if answer == solve.Found && confirmed(declared, gives, takes) {
		return SchemaChange{Class: Breaking, Witness: encode(declared)}
	}
	query.Fit, query.Break, query.Declared = gives.read(), takes.read(), false
	open, answer2 := solve.Find(query)
	switch {
	case answer2 == solve.Empty:
		return SchemaChange{Class: Compatible}
	case answer2 == solve.Found && confirmed(open, gives, takes):
		if answer == solve.Empty {
			return SchemaChange{Class: Risky, Witness: encode(open)}
		}
		return SchemaChange{Class: Breaking, Witness: encode(open)}
	}
	return SchemaChange{Class: Unknown}
}

// confirmed reports whether a document fits gives and not takes, by the engines that also validate calls.
func confirmed(doc any, gives, takes *side) bool {
	fits := func(s *side) bool {
		violations, err := s.engine.Validate(doc)
		return err == nil && len(violations) == 0
	}
	return fits(gives) && !fits(takes)
}

// describe sets the reason and the place.
func (s *SchemaChange) describe(as Direction, takes *side, changed []string, coerces bool) {
	s.Pointer = changed[0]
	switch s.Class {
	case Compatible:
		s.Reason = "arguments that were accepted are still accepted"
		if as == Output {
			s.Reason = "results stay within what was promised"
		}
		return
	case Unknown:
		s.Reason = "neither a document that stops working nor a proof of compatibility was found"
		return
	}
	doc, err := validate.Decode(s.Witness)
	if err != nil {
		return
	}
	var violations []v1.Violation
	if as == Input && coerces {
		_, _, violations, err = takes.engine.Check(doc, true)
		s.Coerced = err == nil && len(violations) == 0
	}
	if violations, err = takes.engine.Validate(doc); err != nil || len(violations) == 0 {
		return
	}
	s.Pointer = pointerOf(changed, violations[0])
	s.Reason = reason(violations[0], as)
	if s.Class == Risky {
		s.Reason += "; only properties that the schema does not declare are refused"
	}
	if s.Coerced {
		s.Reason += "; coercion makes these arguments fit"
	}
}

func reason(v v1.Violation, as Direction) string {
	what := "arguments that were accepted are refused"
	if as == Output {
		what = "readers of the old schema may refuse new results"
	}
	if v.Path == "" {
		return what + ": " + v.Message
	}
	return what + ": " + v.Path + ": " + v.Message
}

func encode(doc any) json.RawMessage { return jsontext.Of(doc) }
