package registry

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
)

// decodeArgs decodes arguments into a Go type. JSON Schema accepts 5.0 and 1e3 as integers but encoding/json does not,
// so decodeArgs rewrites them as 5 and 1000 where needed.
func decodeArgs[In any](args json.RawMessage) (In, error) {
	var in In
	err := json.Unmarshal(args, &in)
	if err == nil || !bytes.ContainsAny(args, ".eE") {
		return in, err
	}
	var again In
	if json.Unmarshal(wholeNumbers(args), &again) == nil {
		return again, nil
	}
	return in, err
}

// wholeNumbers rewrites the whole numbers of a JSON document without fraction or exponent.
func wholeNumbers(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for i := 0; i < len(doc); {
		switch c := doc[i]; {
		case c == '"':
			end := jsontext.SkipString(doc, i)
			out = append(out, doc[i:end]...)
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(doc) && strings.IndexByte("0123456789+-.eE", doc[end]) >= 0 {
				end++
			}
			out = append(out, whole(string(doc[i:end]))...)
			i = end
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// whole returns a whole number without fraction and exponent. It rewrites a number with an exponent only if a double
// holds it exactly.
func whole(number string) string {
	digits, fraction, point := strings.Cut(number, ".")
	if point && strings.Trim(fraction, "0") == "" {
		return digits
	}
	if f, err := strconv.ParseFloat(number, 64); strings.ContainsAny(number, "eE") && err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return number
}
