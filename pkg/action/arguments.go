package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/validate"
)

// maxArgsBytes limits a file of arguments.
const maxArgsBytes = 10 << 20

// Arguments are the arguments of a call or the variables of a prompt, as a person writes them. The file is merged
// first, then whole objects, then key=value and key:=JSON. Later values replace earlier ones key by key.
//
//	city=Oslo        the text "Oslo"; the tool's schema turns "5" into 5 where it requires a number
//	days:=3          any JSON value
//	{"city":"Oslo"}  a whole object
//	-                a whole object from stdin
type Arguments struct {
	Flags []string
	// File has a JSON or YAML object; "-" is stdin.
	File string
}

// stdin lists the options that read stdin.
func (a *Arguments) stdin(c *Config) (options []string) {
	if slices.Contains(c.Files, "-") {
		options = append(options, "-f -")
	}
	if a.File == "-" {
		options = append(options, "--args-file -")
	}
	for _, f := range a.Flags {
		if strings.TrimSpace(f) == "-" {
			options = append(options, "-a -")
		}
	}
	return options
}

// ReadsStdin reports whether stdin has the arguments or the manifests of a [Config].
func (a *Arguments) ReadsStdin(c *Config) bool { return len(a.stdin(c)) > 0 }

// check refuses options that read stdin for two things.
func (a *Arguments) check(c *Config) error {
	if options := a.stdin(c); len(options) > 1 {
		return usagef("only one option can read stdin, got %s", strings.Join(options, " and "))
	}
	return nil
}

// Object returns all arguments, and separately those given as key=value.
func (a *Arguments) Object(c *Config) (all json.RawMessage, pairs map[string]json.RawMessage, err error) {
	return a.merged(c, false)
}

// merged merges all parts into one object. With files, @FILE also adds a whole object.
func (a *Arguments) merged(c *Config, files bool) (all json.RawMessage, pairs map[string]json.RawMessage, err error) {
	if err := a.check(c); err != nil {
		return nil, nil, err
	}
	args := map[string]json.RawMessage{}
	if a.File != "" {
		if err := c.readArgs(a.File, args); err != nil {
			return nil, nil, err
		}
	}
	var flags []string
	for _, f := range a.Flags {
		if name, ok := strings.CutPrefix(f, "@"); !ok || !files {
			flags = append(flags, f)
		} else if err := c.readArgs(name, args); err != nil {
			return nil, nil, err
		}
	}
	pairs, whole, err := ParseArgs(flags)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range whole {
		if w == "-" {
			err = c.readArgs("-", args)
		} else {
			err = mergeObject([]byte(w), args)
		}
		if err != nil {
			return nil, nil, &UsageError{err}
		}
	}
	maps.Copy(args, pairs)
	all, err = json.Marshal(args)
	return all, pairs, err
}

// vars returns the variables of a prompt; @FILE reads a JSON or YAML object for them. A prompt whose input is not an
// object has one value: JSON, @FILE, - for stdin, or plain text if the prompt accepts a string.
func (a *Arguments) vars(c *Config, p *prompt.Prompt) (json.RawMessage, error) {
	if p.TakesObject() {
		all, _, err := a.merged(c, true)
		return all, err
	}
	if err := a.check(c); err != nil {
		return nil, err
	}
	flags := slices.Clone(a.Flags)
	if a.File == "-" {
		flags = append(flags, "-")
	} else if a.File != "" {
		flags = append(flags, "@"+a.File)
	}
	switch len(flags) {
	case 0:
		return nil, nil // the prompt reports which input it accepts
	case 1:
	default:
		return nil, usagef("prompt %q takes one value, not variables by name: give -a once", p.Object().Metadata.Name)
	}
	text, name := []byte(flags[0]), flags[0]
	isFile := name == "-" || strings.HasPrefix(name, "@")
	if isFile {
		name = strings.TrimPrefix(name, "@")
		var err error
		if text, _, err = c.input(name); err != nil {
			return nil, err
		}
	}
	return oneValue(p, text, name, isFile)
}

// oneValue reads the input of a prompt that is a single value.
func oneValue(p *prompt.Prompt, text []byte, name string, isFile bool) (json.RawMessage, error) {
	if isYAML(name) && isFile {
		return yamlValue(name, text)
	}
	_, notJSON := validate.Decode(text)
	takesText := p.Takes("string")
	switch {
	case notJSON == nil && (!takesText || p.Takes(v1.JSONKind(text))):
		return text, nil
	case takesText:
		if isFile { // the last line break of a file or pipe is not part of the text
			text = []byte(strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"))
		}
		return json.Marshal(string(text))
	}
	return nil, usagef("prompt %q takes %s: %q is not JSON: %w", p.Object().Metadata.Name, p.Input(), clip.Words(name, 60), notJSON)
}

func yamlValue(name string, data []byte) (json.RawMessage, error) {
	raw, violations := manifest.ToJSON(name, data)
	if errs := v1.Errors(violations); len(errs) > 0 {
		return nil, usagef("%s", errs[0])
	}
	return raw, nil
}

func (c *Config) readArgs(file string, into map[string]json.RawMessage) error {
	data, name, err := c.input(file)
	if err != nil {
		return err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the byte order mark of Windows editors
	if isYAML(name) {
		if data, err = yamlValue(name, data); err != nil {
			return err
		}
	}
	if err := mergeObject(data, into); err != nil {
		return usagef("%s: %w", name, err)
	}
	return nil
}

// input reads a file of arguments, or stdin for "-", and returns its name for messages.
func (c *Config) input(file string) (data []byte, name string, err error) {
	if name = file; file == "-" {
		name = "stdin"
	}
	if data, err = c.ReadInput(file, maxArgsBytes); err == nil && len(data) > maxArgsBytes {
		err = usagef("%s: the arguments are larger than %d bytes", name, maxArgsBytes)
	}
	return data, name, err
}

// ReadInput returns the content of a file, or of Stdin for "-": at most limit bytes, and one more of a larger one.
func (c *Config) ReadInput(file string, limit int) (data []byte, err error) {
	if file == "-" {
		file = "stdin"
		data, err = io.ReadAll(io.LimitReader(c.Stdin, int64(limit)+1))
	} else {
		data, err = regular.ReadUpTo(file, limit)
	}
	if err != nil {
		return nil, usagef("%s: %w", file, regular.Reason(err))
	}
	return data, nil
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// ParseArgs reads -a flags into pairs and whole objects ("-" stands for stdin).
func ParseArgs(flags []string) (pairs map[string]json.RawMessage, whole []string, err error) {
	pairs = map[string]json.RawMessage{}
	for _, f := range flags {
		if !utf8.ValidString(f) {
			return nil, nil, usagef("argument %q is not valid UTF-8, which JSON requires", clip.Words(f, 60))
		}
		if t := strings.TrimSpace(f); t == "-" || t == "null" || strings.HasPrefix(t, "{") {
			whole = append(whole, t)
			continue
		}
		key, value, ok := strings.Cut(f, "=")
		if !ok || key == "" || key == ":" {
			return nil, nil, usagef("argument %q: expected key=value, key:=JSON or a JSON object", clip.Words(f, 60))
		}
		raw, err := json.Marshal(value)
		if k, isJSON := strings.CutSuffix(key, ":"); isJSON {
			key = k
			if _, err := validate.Decode([]byte(value)); err != nil {
				message, _ := validate.Undecoded(fmt.Sprintf("%q is", clip.Words(value, 60)), err)
				return nil, nil, usagef("argument %q: %s", key, message)
			}
			raw = json.RawMessage(value)
		}
		if err != nil {
			return nil, nil, err
		}
		if _, twice := pairs[key]; twice {
			return nil, nil, usagef("argument %q is given twice", key)
		}
		pairs[key] = raw
	}
	return pairs, whole, nil
}

// mergeObject copies the members of a JSON object into a map. null counts as an empty object.
func mergeObject(data []byte, into map[string]json.RawMessage) error {
	data = bytes.TrimSpace(data)
	doc, err := validate.Decode(data)
	if err != nil {
		message, _ := validate.Undecoded("arguments are", err)
		return errors.New(message)
	}
	if doc == nil {
		return nil
	}
	if _, ok := doc.(map[string]any); !ok {
		return fmt.Errorf("arguments must be a JSON object, got %s", v1.JSONKind(data))
	}
	return json.Unmarshal(data, &into)
}

// nestedArgs moves the pairs whose key is a path, such as body.stock=4, into the objects that the path names. A
// key stays as it is if a property of the tool has that whole key as its name, or if its first part is not a
// property; then validation reports it.
func nestedArgs(tool *v1.Tool, args json.RawMessage, pairs map[string]json.RawMessage) (json.RawMessage, error) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(tool.Spec.InputSchema, &schema) // the schemas true and false have no properties
	var keys []string
	for key := range pairs {
		head, _, dotted := strings.Cut(key, ".")
		_, whole := schema.Properties[key]
		if _, known := schema.Properties[head]; dotted && known && !whole {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return args, nil
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(args, &all); err != nil {
		return nil, err
	}
	slices.Sort(keys)
	for _, key := range keys {
		delete(all, key)
		if err := setAt(all, strings.Split(key, "."), pairs[key]); err != nil {
			return nil, usagef("argument %q: %w", key, err)
		}
	}
	return json.Marshal(all)
}

// setAt sets a member of nested objects, and creates missing objects on the way.
func setAt(in map[string]json.RawMessage, path []string, value json.RawMessage) error {
	name := path[0]
	if len(path) == 1 {
		if _, twice := in[name]; twice {
			return usagef("%q is given twice", name)
		}
		in[name] = value
		return nil
	}
	inner := map[string]json.RawMessage{}
	if raw, ok := in[name]; ok {
		if json.Unmarshal(raw, &inner) != nil || inner == nil {
			return usagef("%q is already %s, not an object", name, v1.JSONKind(raw))
		}
	}
	if err := setAt(inner, path[1:], value); err != nil {
		return err
	}
	raw, err := json.Marshal(inner)
	in[name] = raw
	return err
}
