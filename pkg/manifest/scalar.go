package manifest

import (
	"cmp"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Tags of the YAML core schema, as yaml nodes carry them.
const (
	tagNull  = "!!null"
	tagBool  = "!!bool"
	tagInt   = "!!int"
	tagFloat = "!!float"
	tagStr   = "!!str"
	tagMap   = "!!map"
	tagSeq   = "!!seq"
	tagMerge = "!!merge"
)

// A number longer than this, or with a larger exponent, is refused: programs that
// compute with exact numbers would need memory without bound.
const (
	maxDigits   = 1000
	maxExponent = 1000
)

// resolvePlain gives the tag of a plain scalar by the core schema (YAML 1.2.2,
// section 10.3.2) and its text: for a number the JSON number with every digit, for
// a boolean true or false. reason says why a value cannot be kept.
func resolvePlain(s string) (tag, text, reason string) {
	switch s {
	case "": // a field without a value is told from one that is null
		return tagNull, "", ""
	case "~", "null", "Null", "NULL":
		return tagNull, "null", ""
	case "true", "True", "TRUE":
		return tagBool, "true", ""
	case "false", "False", "FALSE":
		return tagBool, "false", ""
	}
	switch c := s[0]; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
	default:
		return tagStr, s, ""
	}
	unsigned := strings.TrimLeft(s, "+-")
	if len(s)-len(unsigned) > 1 || unsigned == "" {
		return tagStr, s, ""
	}
	switch unsigned {
	case ".inf", ".Inf", ".INF":
		return tagFloat, s, "JSON has no infinite numbers: quote it to make it text"
	case ".nan", ".NaN", ".NAN":
		if s == unsigned {
			return tagFloat, s, "JSON has no NaN: quote it to make it text"
		}
		return tagStr, s, ""
	}
	if s == unsigned && len(s) > 2 && s[0] == '0' {
		switch {
		case s[1] == 'o' && allIn(s[2:], "01234567"):
			return radix(s, s[2:], 8)
		case s[1] == 'x' && allIn(s[2:], "0123456789abcdefABCDEF"):
			return radix(s, s[2:], 16)
		}
	}
	return decimal(s, unsigned)
}

func radix(s, digits string, base int) (tag, text, reason string) {
	if len(digits) > maxDigits {
		return tagInt, s, tooLong(len(digits))
	}
	n, _ := new(big.Int).SetString(digits, base) // the digits were checked
	return tagInt, n.String(), ""
}

func tooLong(n int) string {
	return fmt.Sprintf("a number of %d digits is too long: expected at most %d", n, maxDigits)
}

// decimal reads [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
func decimal(s, unsigned string) (tag, text, reason string) {
	whole, rest := digits(unsigned)
	frac, exp := "", ""
	point := strings.HasPrefix(rest, ".")
	if point {
		frac, rest = digits(rest[1:])
	}
	if whole == "" && frac == "" {
		return tagStr, s, ""
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		sign := ""
		tail := rest[1:]
		if tail != "" && (tail[0] == '+' || tail[0] == '-') {
			sign, tail = tail[:1], tail[1:]
		}
		d, more := digits(tail)
		if d == "" || more != "" {
			return tagStr, s, ""
		}
		exp, rest = rest[:1]+sign+d, ""
		if n, err := strconv.Atoi(d); err != nil || n > maxExponent {
			return tagFloat, s, fmt.Sprintf("the exponent is too large: expected at most %d", maxExponent)
		}
	}
	if rest != "" {
		return tagStr, s, ""
	}
	tag = tagInt
	if point || exp != "" {
		tag = tagFloat
	}
	if n := len(whole) + len(frac); n > maxDigits {
		return tag, s, tooLong(n)
	}
	if s[0] != '+' && len(whole) > 0 && (len(whole) == 1 || whole[0] != '0') && (!point || frac != "") && s != "-0" {
		return tag, s, "" // a JSON number as it is
	}
	whole = cmp.Or(strings.TrimLeft(whole, "0"), "0")
	var b strings.Builder
	if s[0] == '-' && !(tag == tagInt && whole == "0") {
		b.WriteByte('-')
	}
	b.WriteString(whole)
	if point {
		frac = cmp.Or(frac, "0")
		b.WriteString("." + frac)
	}
	b.WriteString(exp)
	return tag, b.String(), ""
}

func digits(s string) (d, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

func allIn(s, set string) bool { return strings.Trim(s, set) == "" }

// yaml11 says what a YAML 1.1 reader such as kubectl makes of a plain scalar that
// means something else in YAML 1.2; "" when both agree.
func yaml11(s string) string {
	if s == "" || len(s) > 64 {
		return ""
	}
	switch s {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return "a boolean"
	}
	unsigned := strings.TrimLeft(s, "+-")
	if len(s)-len(unsigned) > 1 || unsigned == "" || unsigned[0] < '0' || unsigned[0] > '9' {
		return ""
	}
	switch {
	case len(unsigned) > 1 && unsigned[0] == '0' && allIn(unsigned, "01234567") && !allIn(unsigned, "0"):
		n, err := strconv.ParseUint(unsigned, 8, 64)
		if err != nil {
			return ""
		}
		return fmt.Sprintf("the octal number %d", n)
	case strings.HasPrefix(unsigned, "0b") && len(unsigned) > 2 && allIn(unsigned[2:], "01_"),
		strings.Contains(unsigned, "_") && allIn(unsigned, "0123456789_"):
		return "a number"
	}
	return ""
}
