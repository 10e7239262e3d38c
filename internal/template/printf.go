package template

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
)

// oneNumber matches the formats that turn every number into a JSON number.
var oneNumber = regexp.MustCompile(`^%((\.[0-9]*)?[eEfFgG]|[dv])$`)

// printf is fmt.Sprintf for JSON values: each verb accepts only numbers or strings for
// which it is defined, in any notation. A single formatted number also stays a number
// outside of JSON strings.
func printf(format any, values ...any) (any, error) {
	f, ok := format.(string)
	if !ok {
		return "", fmt.Errorf("the format of printf must be a string, got %s", kind(format))
	}
	verbs, err := verbsOf(f)
	if err != nil {
		return "", err
	}
	if len(verbs) != len(values) {
		return "", fmt.Errorf("printf %q takes %s, got %d", f, clip.Count(len(verbs), "value"), len(values))
	}
	if !fits(append([]any{f}, values...)...) {
		return "", errTooLarge
	}
	args := make([]any, len(values))
	for i, v := range values {
		if args[i], err = operand(verbs[i], v); err != nil {
			return "", err
		}
	}
	s := fmt.Sprintf(f, args...)
	if len(s) > MaxOutput {
		return "", errTooLarge
	}
	if oneNumber.MatchString(f) && isNumber(values[0]) && json.Valid([]byte(s)) {
		return raw(s), nil
	}
	return s, nil
}

// verbsOf returns the verbs of a format, and refuses widths that would make the output
// far larger than the arguments.
func verbsOf(f string) (string, error) {
	var verbs []byte
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			continue
		}
		i++
		for i < len(f) && strings.IndexByte("+-# 0.123456789", f[i]) >= 0 {
			end := i
			for end < len(f) && f[end] >= '0' && f[end] <= '9' {
				end++
			}
			if n, err := strconv.Atoi(f[i:end]); end > i && (err != nil || n > maxWidth) {
				return "", fmt.Errorf("printf %q: the width is above %d", f, maxWidth)
			}
			i = max(end, i+1)
		}
		switch {
		case i == len(f):
			return "", fmt.Errorf("printf %q ends within a verb", f)
		case f[i] == '%':
		case strings.IndexByte("vsqdboxXceEfFgGt", f[i]) >= 0:
			verbs = append(verbs, f[i])
		default:
			return "", fmt.Errorf("printf %q: %%%c is not supported here; the verbs are v s q d b o x X c e E f F g G t", f, f[i])
		}
	}
	return string(verbs), nil
}

// operand returns v as a Go type that fmt formats with the verb.
func operand(verb byte, v any) (any, error) {
	text, err := textOf(v)
	if err != nil {
		return nil, err
	}
	wrong := func(want string) error { return fmt.Errorf("%%%c of printf takes %s, got %s", verb, want, kind(v)) }
	switch verb {
	case 'v', 's', 'q':
		return text, nil
	case 't':
		if b, ok := v.(bool); ok {
			return b, nil
		}
		return nil, wrong("a boolean")
	case 'x', 'X':
		if s, ok := v.(string); ok {
			return s, nil
		}
	}
	if !isNumber(v) {
		return nil, wrong("a number")
	}
	if strings.IndexByte("eEfFgG", verb) >= 0 {
		return floatOperand(v, text)
	}
	if i, ok := toInt(v); ok {
		return i, nil
	}
	if exact, ok := jsontext.Number(text); ok && !strings.ContainsAny(text, ".eE") {
		i, _ := exact.Int(nil)
		return i, nil
	}
	return nil, fmt.Errorf("%%%c of printf takes a whole number, got one with a fraction or an exponent", verb)
}

// floatOperand returns a float64 if it represents the number exactly, and otherwise the number with all its digits.
// Numbers outside of the range of float64 are refused, because they would print as many digits as their exponent says.
func floatOperand(v any, text string) (any, error) {
	f, err := strconv.ParseFloat(text, 64)
	exact, ok := jsontext.Number(text)
	if err != nil || !ok {
		return nil, fmt.Errorf("printf: the number is too large")
	}
	if _, isFloat := v.(float64); isFloat || f == 0 {
		return f, nil
	}
	if i, ok := toInt(v); ok && int64(f) == i {
		return f, nil
	}
	return exact, nil
}

func isNumber(v any) bool { return kind(v) == "a number" }
