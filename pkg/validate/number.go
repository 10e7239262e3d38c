package validate

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
)

// Bounds of one number. Both engines use exact fractions, for which 1e1000000000 would take 400 MB,
// and one engine compares with doubles.
const (
	maxNumberLength = 1000
	maxExponent     = 1000
)

var (
	errNumberSyntax = errors.New("not a JSON number")
	errNumberRange  = errors.New("number beyond the range of a double: at most 1.8e308, and exponents from -1000 to 308")
	errNumberLength = errors.New("number of more than 1000 characters")
)

// checkNumber returns an error unless s is a number by the grammar of RFC 8259, section 6, within
// the range of a double and at most 1000 characters long. Shorter numbers keep all digits. The
// range is limited because RFC 8259 guarantees nothing beyond it.
func checkNumber(s string) error {
	if len(s) > maxNumberLength {
		return errNumberLength
	}
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') || jsontext.ValidNumber(s, 0) != len(s) {
		return errNumberSyntax
	}
	mantissa, exp, _ := strings.Cut(strings.ToLower(s), "e")
	exponent := 0
	if exp != "" {
		n, err := strconv.Atoi(exp)
		if err != nil || n > maxExponent || n < -maxExponent {
			return errNumberRange
		}
		exponent = n
	}
	whole := strings.IndexByte(mantissa+".", '.')
	if whole+exponent >= 308 {
		if _, err := strconv.ParseFloat(s, 64); err != nil {
			return errNumberRange
		}
	}
	return nil
}

// isInteger reports whether a checked number is whole: true for 5, 5.0 and 5e2, false for 5.5.
func isInteger(n json.Number) bool {
	mantissa, exp, hasExp := strings.Cut(strings.ToLower(string(n)), "e")
	_, fraction, _ := strings.Cut(mantissa, ".")
	fraction = strings.TrimRight(fraction, "0")
	shift := 0
	if hasExp {
		shift, _ = strconv.Atoi(exp) // checked: at most four digits
	}
	if shift >= 0 {
		return len(fraction) <= shift
	}
	whole, _, _ := strings.Cut(mantissa, ".")
	whole = strings.TrimLeft(whole, "-0")
	zeros := len(whole) - len(strings.TrimRight(whole, "0"))
	return fraction == "" && (whole == "" || zeros >= -shift)
}
