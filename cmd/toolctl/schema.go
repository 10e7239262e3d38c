package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/diff"
)

func newSchemaCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "schema",
		Short: "Compare JSON Schemas",
	}, newSchemaDiffCmd(a))
}

func newSchemaDiffCmd(a *app) *cobra.Command {
	as := string(diff.Input)
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Find breaking changes between two JSON Schemas, with a witness",
		Long: `Classify the change of a JSON Schema for those who rely on the old one, with a witness:
a document that was valid before and no longer is.

  neutral      only titles, descriptions and other annotations changed
  compatible   it is proven that nothing stops working
  risky        only properties that an open object does not declare stop working
  breaking     the witness stops working
  unknown      neither a witness nor a proof was found

As an input schema, the new one must accept every document that the old one accepted; as
an output schema, it must allow nothing that the old one did not allow. Schemas are JSON or
YAML files, or parts of files named by a JSON Pointer, such as tool.yaml#/spec/input_schema.
The exit code is 0 for neutral and compatible, and 1 for the other classes.`,
		Example: `  toolctl schema diff old.json new.json --as input
  toolctl schema diff v1.yaml v2.yaml --as output -o json
  toolctl schema diff old/tool.yaml#/spec/input_schema new/tool.yaml#/spec/input_schema`,
		Annotations: formats("table", "json"),
		Args:        exactArgs(2, "two schema files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printed(a, schemaChange)((&action.SchemaDiff{Config: a.stored(cmd.Context()), Old: args[0], New: args[1], As: diff.Direction(as)}).Run(cmd.Context()))
		},
	}
	bindChoice(cmd, &as, "as", "what the schemas describe: input (arguments) or output (results)", "input", "output")
	return cmd
}

// schemaChange prints a change with its witness. A change that may break something is an error.
func schemaChange(change diff.SchemaChange) (text string, verdict error) {
	text = fmt.Sprintf("%s: %s", change.Class, change.Reason)
	if change.Pointer != "" {
		text += "\nchanged: " + change.Pointer
	}
	if change.Witness != nil {
		text += "\nwitness: " + string(change.Witness)
	}
	if change.Class.Worse(diff.Compatible) {
		verdict = statusError{exitFailed, ""}
	}
	return text, verdict
}
