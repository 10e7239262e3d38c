package template

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
)

// equal reports whether a equals one of the others. Values of different types are unequal but not an error, because a
// model may send either type.
func equal(a any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, fmt.Errorf("eq needs two values")
	}
	for _, b := range others {
		if same, err := equalTwo(a, b); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

func equalTwo(a, b any) (bool, error) {
	a, b = plain(a), plain(b)
	if c, ok := compareNumbers(a, b); ok {
		return c == 0, nil
	}
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y, nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y, nil
	case map[string]any, []any:
		if kind(a) != kind(b) {
			return false, nil
		}
		return false, fmt.Errorf("two values of the kind %q cannot be compared", kind(a))
	}
	return a == nil && b == nil, nil
}

// plain returns null as nil, and text from a function as a string or a number, for comparisons.
func plain(v any) any {
	switch v := v.(type) {
	case null:
		return nil
	case raw:
		if json.Valid([]byte(v)) && v != "" && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
			return json.Number(v)
		}
		return string(v)
	}
	return v
}

// ordered returns lt, le, gt or ge.
func ordered(holds func(int) bool) func(a, b any) (bool, error) {
	return func(a, b any) (bool, error) {
		a, b = plain(a), plain(b)
		if c, ok := compareNumbers(a, b); ok {
			return holds(c), nil
		}
		x, okX := a.(string)
		y, okY := b.(string)
		switch {
		case a == nil || b == nil:
			return false, errMissing
		case okX && okY:
			return holds(strings.Compare(x, y)), nil
		}
		return false, fmt.Errorf("cannot order %s and %s: two numbers or two strings are needed", kind(a), kind(b))
	}
}

// compareNumbers compares two numbers by their exact values. ok is false if one is not a number.
func compareNumbers(a, b any) (result int, ok bool) {
	i, okI := toInt(a)
	j, okJ := toInt(b)
	if okI && okJ {
		return cmp.Compare(i, j), true
	}
	x, okX := toFloat(a)
	y, okY := toFloat(b)
	if !okX || !okY {
		return 0, false
	}
	return x.Cmp(y), true
}

func toInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case uint8:
		return int64(v), true
	}
	return 0, false
}

// toFloat returns the exact value of a number whose text is not too long.
func toFloat(v any) (*big.Float, bool) {
	s, ok := scalar(v)
	if _, isBool := v.(bool); isBool || !ok {
		return nil, false
	}
	// The decimal text is compared, so that 0.1 in a template equals an argument 0.1 with all its digits.
	return jsontext.Number(s)
}
