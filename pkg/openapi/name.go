package openapi

import (
	"strings"
	"unicode"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/importer"
)

// kebab converts an identifier to lower case with dashes: getPetById becomes get-pet-by-id, and
// repos/list-for-org becomes repos-list-for-org. Characters other than ASCII letters and digits
// separate words. The result may be "".
func kebab(s string) string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = nil
		}
	}
	runes := []rune(s)
	for i, r := range runes {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		if unicode.IsUpper(r) && len(word) > 0 {
			before := runes[i-1]
			next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			// A new word starts at Id in petId and at the last capital of HTTPServer, but not at
			// the s of IDs.
			if !unicode.IsUpper(before) || next && string(runes[i+1:min(i+3, len(runes))]) != "s" {
				end()
			}
		}
		word = append(word, r)
	}
	end()
	return strings.Join(words, "-")
}

// toolName returns the tool name of an operation: its operationId, or by default method and path.
func toolName(prefix, operationID, method, path string) string {
	name := kebab(operationID)
	if name == "" {
		name = kebab(method + "/" + path)
	}
	if prefix != "" {
		name = prefix + name
	}
	if len(name) > importer.MaxName {
		name = importer.UniqueName(name, method+" "+path)
	}
	return name
}

// fieldName converts a name so that a Go template can use it as {{.name}}.
func fieldName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		s = "_" + s
	}
	return s[:min(len(s), 64)]
}

// envName makes the prefix of variable names from the title of an API: "GitHub v3 REST API" becomes
// GITHUB. Words that do not identify the API are left out, unless nothing else remains.
func envName(title string) string {
	filler := map[string]bool{"api": true, "apis": true, "rest": true, "openapi": true, "swagger": true, "spec": true, "specification": true, "the": true, "http": true}
	words := strings.FieldsFunc(title, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	var kept []string
	for _, w := range words {
		low := strings.ToLower(w)
		if filler[low] || strings.Trim(low, "v0123456789") == "" {
			continue
		}
		kept = append(kept, w)
	}
	if len(kept) == 0 {
		kept = words
	}
	for len(kept) > 1 && len(strings.Join(kept, "_")) > 32 {
		kept = kept[:len(kept)-1]
	}
	name := strings.ToUpper(strings.Join(kept, "_"))
	name = name[:min(len(name), 32)]
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "API_" + name
	}
	return strings.TrimRight(name, "_")
}

// labelValue converts a text to a legal label value, or returns "".
func labelValue(s string) string {
	v := kebab(s)
	v = strings.Trim(v[:min(len(v), importer.MaxName)], "-")
	return v
}

// validPrefix reports whether tool names may start with p.
func validPrefix(p string) bool {
	return p == "" || len(p) <= 32 && v1.IsName(p+"x") && !strings.Contains(p, ".")
}
