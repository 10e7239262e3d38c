package validate

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// Bounds of one number. Both engines calculate with exact fractions, in which
// 1e1000000000 would take 400 MB, and one of them compares by way of doubles.
const (
	maxNumberLength = 1000
	maxExponent     = 1000
)

var (
	errNumberSyntax = errors.New("not a JSON number")
	errNumberRange  = errors.New("number beyond the range of a double: at most 1.8e308, and exponents from -1000 to 308")
	errNumberLength = errors.New("number of more than 1000 characters")
)

// checkNumber says whether s is a number by the grammar of RFC 8259, section 6,
// within the range of a double and not longer than 1000 characters. Any number
// of digits up to that is kept; range is bounded because RFC 8259 promises
// nothing beyond it.
func checkNumber(s string) error {
	if len(s) > maxNumberLength {
		return errNumberLength
	}
	i := 0
	digits := func() int {
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i - start
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	first := i
	whole := digits()
	if whole == 0 || whole > 1 && s[first] == '0' {
		return errNumberSyntax
	}
	if i < len(s) && s[i] == '.' {
		i++
		if digits() == 0 {
			return errNumberSyntax
		}
	}
	exponent := 0
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		start := i
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if digits() == 0 {
			return errNumberSyntax
		}
		n, err := strconv.Atoi(s[start:i])
		if err != nil || n > maxExponent || n < -maxExponent {
			return errNumberRange
		}
		exponent = n
	}
	if i != len(s) {
		return errNumberSyntax
	}
	if whole+exponent >= 308 {
		if _, err := strconv.ParseFloat(s, 64); err != nil {
			return errNumberRange
		}
	}
	return nil
}

// isInteger says whether a checked number is whole: 5, 5.0 and 5e2 are, 5.5 is not.
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
