package manifest

import (
	"encoding/json"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Documents calls yield with the root node of each document of a YAML or JSON stream until it returns false, for
// programs that read documents other than manifests. Nodes are as written: aliases and merge keys are not
// resolved. It returns the syntax error that ended the stream, with its place in the file, or nil.
func Documents(file string, data []byte, yield func(*yaml.Node) bool) *v1.Violation {
	if strings.EqualFold(path.Ext(file), ".json") || looksLikeJSON(data) {
		return parseJSON(file, data, yield)
	}
	return parseYAML(file, data, yield)
}

// Scalar returns the value of a scalar by the core schema of YAML 1.2: a string, a [json.Number] with every digit,
// a bool or nil. The only tag that it honors is !!str. The error says why a number cannot be kept.
func Scalar(n *yaml.Node) (any, error) {
	if n.Style&quoted != 0 || n.Style&yaml.TaggedStyle != 0 && n.ShortTag() == tagStr {
		return n.Value, nil
	}
	tag, text, reason := resolvePlain(n.Value)
	switch {
	case reason != "":
		return nil, errors.New(reason)
	case tag == tagInt, tag == tagFloat:
		return json.Number(text), nil
	case tag == tagBool:
		return text == "true", nil
	case tag == tagNull:
		return nil, nil
	}
	return text, nil
}

var notName = regexp.MustCompile(`[^a-z0-9._]+`)

// Name makes a legal name of at most 63 characters from any text, without "__", which separates a server from its
// tool. It returns "" for a text without ASCII letters or digits.
func Name(text string) string {
	text = notName.ReplaceAllString(strings.ToLower(text), "-")
	for strings.Contains(text, "__") {
		text = strings.ReplaceAll(text, "__", "_")
	}
	parts := strings.Split(text, ".")
	for i := range parts {
		parts[i] = strings.Trim(parts[i], "-_")
	}
	text = strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ".")
	return strings.Trim(text[:min(len(text), 63)], "-_.")
}
