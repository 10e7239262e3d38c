package manifest

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
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

// A number longer than this, or with a larger exponent, is refused: programs with exact arithmetic would
// need unbounded memory for it.
const (
	maxDigits   = 1000
	maxExponent = 1000
)

// resolvePlain returns the tag of a plain scalar by the core schema (YAML 1.2.2, section 10.3.2) and its
// text: the JSON number with every digit for a number, true or false for a boolean. reason says why a value
// cannot be kept.
func resolvePlain(s string) (tag, text, reason string) {
	switch s {
	case "": // an empty field differs from a null field
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
	switch m := number().FindStringSubmatch(s); {
	case m == nil:
		return tagStr, s, ""
	case m[groupInf] != "":
		return tagFloat, s, "JSON has no infinite numbers: quote it to make it text"
	case m[groupNaN] != "":
		return tagFloat, s, "JSON has no NaN: quote it to make it text"
	case m[groupOctal] != "":
		return radix(s, m[groupOctal], 8)
	case m[groupHex] != "":
		return radix(s, m[groupHex], 16)
	default:
		return decimal(s, m)
	}
}

// number matches a number of the core schema; a decimal has a sign, whole part, point, fraction and
// exponent.
var number = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:([-+]?\.(?:inf|Inf|INF))|(\.(?:nan|NaN|NAN))|0o([0-7]+)|0x([0-9a-fA-F]+)|([-+]?)([0-9]*)(\.?)([0-9]*)([eE][-+]?([0-9]+))?)$`)
})

// The groups of the regular expression number.
const (
	groupInf = iota + 1
	groupNaN
	groupOctal
	groupHex
	groupSign
	groupWhole
	groupPoint
	groupFraction
	groupExponent
	groupExponentDigits
)

func radix(s, digits string, base int) (tag, text, reason string) {
	if len(digits) > maxDigits {
		return tagInt, s, tooLong(len(digits))
	}
	n, _ := new(big.Int).SetString(digits, base) // the regular expression checked the digits
	return tagInt, n.String(), ""
}

func tooLong(n int) string {
	return fmt.Sprintf("a number of %d digits is too long: expected at most %d", n, maxDigits)
}

// decimal reads [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
func decimal(s string, m []string) (tag, text, reason string) {
	whole, point, fraction, exponent := m[groupWhole], m[groupPoint], m[groupFraction], m[groupExponent]
	if whole+fraction == "" {
		return tagStr, s, ""
	}
	if n, err := strconv.Atoi(cmp.Or(m[groupExponentDigits], "0")); err != nil || n > maxExponent {
		return tagFloat, s, fmt.Sprintf("the exponent is too large: expected at most %d", maxExponent)
	}
	tag = tagInt
	if point+exponent != "" {
		tag = tagFloat
	}
	if n := len(whole) + len(fraction); n > maxDigits {
		return tag, s, tooLong(n)
	}
	// JSON allows no plus sign, no leading zeros and no bare point.
	whole = cmp.Or(strings.TrimLeft(whole, "0"), "0")
	sign := strings.Trim(m[groupSign], "+")
	if tag == tagInt && whole == "0" {
		sign = ""
	}
	if point != "" {
		fraction = cmp.Or(fraction, "0")
	}
	return tag, sign + whole + point + fraction + exponent, ""
}

func allIn(s, set string) bool { return strings.Trim(s, set) == "" }

// yaml11 returns how a YAML 1.1 reader such as kubectl reads a plain scalar with a different meaning in YAML
// 1.2, or "" if both agree.
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
