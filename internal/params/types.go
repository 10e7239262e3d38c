package params

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/validate"
)

// Whole is a whole number, which may be written as 2.0.
type Whole int

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Whole) UnmarshalJSON(raw []byte) error {
	var f float64
	switch err := json.Unmarshal(raw, &f); {
	case err != nil:
		return fmt.Errorf("expected a whole number, got %s", v1.JSONKind(raw))
	case f != math.Trunc(f) || math.Abs(f) > math.MaxInt32:
		return fmt.Errorf("expected a whole number, got %v", f)
	}
	*n = Whole(f)
	return nil
}

// Value is a value of any type; the numbers in it are [json.Number].
type Value struct {
	Doc   any
	Given bool
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *Value) UnmarshalJSON(raw []byte) (err error) {
	v.Doc, err = validate.Decode(raw)
	v.Given = true
	return err
}

// Object is an object; the numbers in it are [json.Number].
type Object map[string]any

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Object) UnmarshalJSON(raw []byte) error {
	doc, err := validate.Decode(raw)
	object, ok := doc.(map[string]any)
	if err == nil && !ok {
		err = fmt.Errorf("expected an object")
	}
	*o = object
	return err
}

// Expression is a regular expression in the syntax of RE2.
type Expression struct{ *regexp.Regexp }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (e *Expression) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return nil // an empty text sets no expression
	}
	re, err := regexp.Compile(string(text))
	if err != nil {
		return &expressionError{what: fmt.Sprintf("not a regular expression (RE2): %v", err)}
	}
	e.Regexp = re
	return nil
}

// Expressions are regular expressions by name.
type Expressions map[string]Expression

// UnmarshalJSON implements [json.Unmarshaler].
func (e *Expressions) UnmarshalJSON(raw []byte) error {
	var texts map[string]string
	if err := json.Unmarshal(raw, &texts); err != nil {
		return err
	}
	*e = Expressions{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		re, err := regexp.Compile(texts[name])
		if err != nil {
			return &expressionError{at: "." + name, what: fmt.Sprintf("not a regular expression (RE2): %v", err)}
		}
		(*e)[name] = Expression{re}
	}
	return nil
}

// expressionError says that a text is not a regular expression; at is the place of the text in the parameter.
type expressionError struct{ at, what string }

func (e *expressionError) Error() string { return e.what }
