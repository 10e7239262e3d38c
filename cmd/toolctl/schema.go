package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
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
JSON or YAML. The exit code is 0 for neutral and compatible, else 1.
`,
		Example: `  toolctl schema diff old.json new.json --as input
  toolctl schema diff v1.yaml v2.yaml --as output -o json`,
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

func (a *app) readSchema(ctx context.Context, path string) (json.RawMessage, error) {
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
	return raw, nil
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
