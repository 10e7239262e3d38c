package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/validate"
)

func newSchemaCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "schema",
		Short: "Compare JSON Schemas",
	}, newSchemaDiffCmd(a))
}

func newSchemaDiffCmd(a *app) *cobra.Command {
	as := ""
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say whether a change of a JSON Schema breaks anyone, with a witness",
		Long: `Say what the change of a JSON Schema means for those who rely on the old one, with
a witness: a document that worked and does not any more.

  neutral      only titles, descriptions and other annotations changed
  compatible   it is proven that nothing stops working
  risky        only properties that an open object does not declare stop working
  breaking     the witness stops working
  unknown      neither a witness nor a proof was found

As an input schema, the new one must take every document that the old one took; as an
output schema, it must allow nothing that the old one did not. Schemas are files of
JSON or YAML, or parts of one that a JSON Pointer names, such as
tool.yaml#/spec/input_schema. The exit code is 0 for neutral and compatible, else 1.
`,
		Example: `  toolctl schema diff old.json new.json --as input
  toolctl schema diff v1.yaml v2.yaml --as output -o json
  toolctl schema diff old/tool.yaml#/spec/input_schema new/tool.yaml#/spec/input_schema`,
		Annotations: formats("table", "json"),
		Args:        exactArgs(2, "two schema files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if as != string(diff.Input) && as != string(diff.Output) {
				return usagef("--as %q: expected input or output", as)
			}
			before, err := a.readSchema(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			after, err := a.readSchema(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			change, err := diff.NewChecker().Schemas(before, after, diff.Direction(as), validate.Draft2020)
			if err != nil {
				return err
			}
			return a.printSchemaChange(a.format(), change)
		},
	}
	cmd.Flags().StringVar(&as, "as", string(diff.Input), "what the schemas describe: input (arguments) or output (results)")
	_ = cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions([]string{"input", "output"}, noFiles))
	return cmd
}

// readSchema reads FILE or FILE#POINTER.
func (a *app) readSchema(ctx context.Context, name string) (json.RawMessage, error) {
	path, pointer, part := strings.Cut(name, "#")
	if _, err := os.Stat(name); err == nil {
		path, pointer, part = name, "", false
	}
	data, err := a.readInput(ctx, path, validate.DefaultMaxSchemaBytes)
	if err != nil {
		return nil, err
	}
	if len(data) > validate.DefaultMaxSchemaBytes {
		return nil, statusError{exitInvalid, fmt.Sprintf("%s: larger than %d bytes", path, validate.DefaultMaxSchemaBytes)}
	}
	raw, violations := manifest.ToJSON(path, data)
	for _, v := range violations {
		if !v.IsWarning() {
			return nil, v1.NewValidationError(v1.ManifestInvalid, path, violations)
		}
	}
	doc, err := validate.Decode(raw)
	if err != nil {
		return nil, statusError{exitInvalid, path + ": " + err.Error()}
	}
	if part {
		return schemaAt(name, doc, pointer)
	}
	return raw, isSchema(path, doc)
}

// isSchema refuses documents that hold schemas, but are none: all of their fields would be unknown
// keywords, which refuse nothing.
func isSchema(path string, doc any) error {
	o, _ := doc.(map[string]any)
	for _, key := range []string{"openapi", "swagger"} {
		if _, ok := o[key].(string); ok {
			return usagef("%s is an OpenAPI document: name one of its schemas, as in %s#/components/schemas/NAME, or import both with 'toolctl import openapi' and compare the folders with 'toolctl diff -f NEW --against OLD'", path, path)
		}
	}
	kind, _ := o["kind"].(string)
	if _, ok := o["apiVersion"].(string); ok && kind != "" {
		return usagef("%s is a manifest of kind %s: compare manifests with 'toolctl diff -f NEW --against OLD', or name one of its schemas, as in %s#/spec/input_schema", path, clip.Line(kind), path)
	}
	return nil
}

// schemaAt returns the part of a document that a JSON Pointer names (RFC 6901). Where the part refers
// to others, it is the document with a reference to the part: the fields around are no keywords.
func schemaAt(name string, doc any, pointer string) (json.RawMessage, error) {
	text, err := url.PathUnescape(pointer)
	if err != nil || text != "" && text[0] != '/' {
		return nil, usagef("%s: expected a JSON Pointer behind #, such as #/spec/input_schema", name)
	}
	at := doc
	for _, token := range strings.Split(text, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var next any
		ok := false
		switch v := at.(type) {
		case map[string]any:
			if next, ok = v[token]; !ok {
				near := v1.Nearest(token, slices.Sorted(maps.Keys(v)))
				if near != "" {
					near = fmt.Sprintf("; did you mean %q?", near)
				}
				return nil, usagef("%s: there is no %q%s", name, token, near)
			}
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) {
				next, ok = v[i], true
			}
		}
		if !ok {
			return nil, usagef("%s: there is no %q", name, token)
		}
		at = next
	}
	if err := isSchema(name, at); err != nil {
		return nil, err
	}
	part := jsontext.Of(at)
	root, ok := doc.(map[string]any)
	if !ok || !bytes.Contains(part, []byte(`"$ref":"#`)) {
		return part, nil
	}
	root["$ref"] = "#" + pointer
	return jsontext.Of(root), nil
}

func (a *app) printSchemaChange(format string, change diff.SchemaChange) error {
	if format == "json" {
		if err := printJSON(a.out, change); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.out, "%s: %s\n", change.Class, change.Reason)
		if change.Pointer != "" {
			fmt.Fprintf(a.out, "changed: %s\n", change.Pointer)
		}
		if change.Witness != nil {
			fmt.Fprintf(a.out, "witness: %s\n", change.Witness)
		}
	}
	if change.Class.Worse(diff.Compatible) {
		return statusError{exitFailed, ""}
	}
	return nil
}
