package clip

import (
	"strconv"
	"strings"
)

// Count returns a number with its noun: "1 item", "2 items", "2 properties".
func Count(n int, noun string) string {
	if n != 1 {
		if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.ContainsAny(stem[max(0, len(stem)-1):], "aeiou") {
			noun = stem + "ies"
		} else {
			noun += "s"
		}
	}
	return strconv.Itoa(n) + " " + noun
}

// Some joins the first five texts and counts the others.
func Some(texts []string) string {
	const most = 5
	if more := len(texts) - most; more > 0 {
		return strings.Join(texts[:most], "; ") + "; and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(texts, "; ")
}
