package main

import (
	"context"
	"encoding/json"
	"strings"

	"toolctl.dev/toolctl/pkg/action"
)

const argsHelp = "argument as key=value, key:=JSON, or a whole JSON object; - reads an object from stdin; may be repeated"

// callArgs makes the arguments of a call from --args-file and the -a flags.
func (a *app) callArgs(ctx context.Context, flags []string, file string) (json.RawMessage, error) {
	args, _, err := a.argsAndPairs(ctx, flags, file)
	return args, err
}

// argsAndPairs returns what callArgs does, and the values of -a key=value by key.
func (a *app) argsAndPairs(ctx context.Context, flags []string, file string) (all json.RawMessage, pairs map[string]json.RawMessage, err error) {
	if err := a.stdinOnce(flags, file); err != nil {
		return nil, nil, err
	}
	return (&action.Arguments{Flags: flags, File: file, Read: a.readInput}).Object(ctx)
}

// stdinOnce refuses a command line that reads stdin for two things.
func (a *app) stdinOnce(flags []string, file string) error {
	var asked []string
	for _, f := range a.conf.Files {
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
		return usagef("only one option can read stdin, got %s", strings.Join(asked, " and "))
	}
	return nil
}
