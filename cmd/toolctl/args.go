package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/validate"
)

// maxArgsBytes bounds what is read as arguments.
const maxArgsBytes = 10 << 20

const argsHelp = "argument as key=value, key:=JSON, or a whole JSON object; - reads an object from stdin; may be repeated"

// callArgs makes the arguments of a call from --args-file and the -a flags. They
// are merged in this order; a whole object and a file are overridden key by key.
//
//	-a city=Oslo        the text "Oslo"; the tool's schema turns "5" into 5 where it wants a number
//	-a days:=3          any JSON value
//	-a '{"city":"Oslo"}' a whole object
//	-a -                a whole object from stdin
func (a *app) callArgs(ctx context.Context, flags []string, file string) (json.RawMessage, error) {
	args, _, err := a.argsAndPairs(ctx, flags, file)
	return args, err
}

// argsAndPairs returns what callArgs does, and the values of -a key=value by key.
func (a *app) argsAndPairs(ctx context.Context, flags []string, file string) (all json.RawMessage, pairs map[string]json.RawMessage, err error) {
	args := map[string]json.RawMessage{}
	if err := a.stdinOnce(flags, file); err != nil {
		return nil, nil, err
	}
	if file != "" {
		if err := a.readArgs(ctx, file, args); err != nil {
			return nil, nil, err
		}
	}
	pairs, whole, err := parseArgs(flags)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range whole {
		if w == "-" {
			err = a.readArgs(ctx, "-", args)
		} else {
			err = mergeObject([]byte(w), args)
		}
		if err != nil {
			return nil, nil, usageError{err}
		}
	}
	maps.Copy(args, pairs)
	all, err = json.Marshal(args)
	return all, pairs, err
}

// stdinOnce refuses a command line that reads stdin for two things.
func (a *app) stdinOnce(flags []string, file string) error {
	var asked []string
	for _, f := range a.files {
		if f == "-" {
			asked = append(asked, "-f -")
		}
	}
	if file == "-" {
		asked = append(asked, "--args-file -")
	}
	for _, f := range flags {
		if strings.TrimSpace(f) == "-" {
			asked = append(asked, "-a -")
		}
	}
	if len(asked) > 1 {
		return usagef("stdin can be read once only: %s", strings.Join(asked, " and "))
	}
	return nil
}

func (a *app) readArgs(ctx context.Context, file string, into map[string]json.RawMessage) error {
	data, err := a.argsInput(ctx, file)
	if err != nil {
		return err
	}
	name := file
	if file == "-" {
		name = "stdin"
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // editors of Windows begin files so
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

// argsInput reads what a person names as arguments; "-" is stdin.
func (a *app) argsInput(ctx context.Context, file string) ([]byte, error) {
	name := file
	if file == "-" {
		name = "stdin"
	}
	data, err := a.readInput(ctx, file, maxArgsBytes)
	if err != nil {
		return nil, usagef("%s: %w", name, regular.Reason(err))
	}
	if len(data) > maxArgsBytes {
		return nil, usagef("%s: arguments over %d bytes", name, maxArgsBytes)
	}
	return data, nil
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// parseArgs reads -a flags into pairs and whole objects ("-" stands for stdin).
func parseArgs(flags []string) (pairs map[string]json.RawMessage, whole []string, err error) {
	pairs = map[string]json.RawMessage{}
	for _, f := range flags {
		if !utf8.ValidString(f) {
			return nil, nil, usagef("argument %q is not UTF-8, which JSON needs", clip.Words(f, 60))
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

// mergeObject puts the members of a JSON object into a map. null is an object without any.
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
