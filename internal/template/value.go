package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"toolctl.dev/toolctl/internal/jsontext"
)

// null is the JSON null inside a template. It is an empty array, so if, and, or, not and range treat it as false;
// unlike nil, it differs from a missing argument.
type null [0]struct{}

func (null) String() string               { return "null" }
func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// raw is JSON text from a function. It is written unchanged outside of JSON strings. Arguments never have this type.
type raw string

var errMissing = errors.New("its argument is missing: guard it with default or if")

// convert returns JSON data as values for a template; it does not change the
// data.
func convert(v any) any {
	switch v := v.(type) {
	case nil:
		return null{}
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = convert(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = convert(e)
		}
		return l
	case json.Number:
		return number(v)
	case json.RawMessage:
		return convertRaw(v)
	case float64:
		return whole(v)
	case float32:
		return whole(float64(v))
	case int:
		return int64(v)
	case string, bool, int64:
		return v
	}
	return convertOther(v)
}

// convertOther converts other Go values by encoding them as JSON.
func convertOther(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return null{}
	}
	return convertRaw(data)
}

func convertRaw(data json.RawMessage) any {
	var doc any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if dec.Decode(&doc) != nil {
		return null{}
	}
	return convert(doc)
}

func whole(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f)
	}
	return f
}

// number returns an int64 or a float64 if it represents n exactly, and otherwise n. A json.Number that is not a number
// is text.
func number(n json.Number) any {
	if n == "" || n[0] != '-' && (n[0] < '0' || n[0] > '9') || !json.Valid([]byte(n)) {
		return string(n)
	}
	exact, ok := jsontext.Number(string(n))
	if !ok {
		return n
	}
	if i, accuracy := exact.Int64(); accuracy == big.Exact {
		return i
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return n
	}
	if same, _ := jsontext.Number(formatFloat(f)); same.Cmp(exact) == 0 {
		return f
	}
	return n
}

// formatFloat writes a number as encoding/json does (ECMA-262, Number::toString).
func formatFloat(f float64) string {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.FormatFloat(f, format, -1, 64)
}

// scalar returns the text of a number or a boolean, which is its JSON text too.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case uint8: // indexing a string returns a byte
		return strconv.Itoa(int(v)), true
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return "", false
		}
		return formatFloat(v), true
	case json.Number:
		return string(v), true
	}
	return "", false
}

// textOf returns a value as text: strings unchanged, other values as JSON.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", errMissing
	case null:
		return "", errors.New("its argument is null: use default or if")
	case string:
		return v, nil
	case raw:
		return string(v), nil
	}
	if s, ok := scalar(v); ok {
		return s, nil
	}
	return encode(v)
}

// encode returns a value as JSON, without HTML escapes.
func encode(v any) (string, error) {
	switch v := v.(type) {
	case nil, null:
		return "null", nil
	case raw:
		return string(v), nil
	case string:
		if len(v) > MaxOutput {
			return "", errTooLarge
		}
		return string(jsontext.Quote(v)), nil
	}
	if s, ok := scalar(v); ok {
		return s, nil
	}
	switch v.(type) {
	case map[string]any, []any:
	default:
		return "", fmt.Errorf("a value of type %T is not JSON", v)
	}
	if !fits(v) {
		return "", errTooLarge
	}
	text, err := jsontext.Marshal(v)
	return string(text), err
}

var errTooLarge = fmt.Errorf("the text is larger than %d bytes", MaxOutput)

// fits reports whether the values together have at most MaxOutput bytes before
// escaping; it stops counting at the limit.
func fits(values ...any) bool {
	left := MaxOutput
	for _, v := range values {
		if left = left - size(v, left); left < 0 {
			return false
		}
	}
	return true
}

func size(v any, limit int) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case raw:
		return len(v)
	case json.Number:
		return len(v)
	case map[string]any:
		n := 2
		for k, e := range v {
			if n += len(k) + 4 + size(e, limit-n); n > limit {
				break
			}
		}
		return n
	case []any:
		n := 2
		for _, e := range v {
			if n += 1 + size(e, limit-n); n > limit {
				break
			}
		}
		return n
	}
	return 8
}
