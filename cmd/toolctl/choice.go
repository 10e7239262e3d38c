package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
)

// choice is the value of a flag that takes one of some words.
type choice struct {
	into  *string
	words []string
}

func (c choice) String() string { return *c.into }
func (c choice) Type() string   { return "string" }

func (c choice) Set(text string) error {
	*c.into = text
	if slices.Contains(c.words, text) {
		return nil
	}
	const few = 4
	if last := len(c.words) - 1; last < few {
		return fmt.Errorf("expected %s or %s", strings.Join(c.words[:last], ", "), c.words[last])
	}
	return fmt.Errorf("expected one of %s%s", strings.Join(c.words, ", "), v1.DidYouMean(text, c.words))
}

// bindChoice binds a flag that takes one of some words, and completes them. What into holds is the default.
func bindChoice(cmd *cobra.Command, into *string, name, usage string, words ...string) {
	cmd.Flags().Var(choice{into, words}, name, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, noFiles))
}
