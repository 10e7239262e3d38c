package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
)

type recordOptions struct {
	*app
	cassette string
	scenario string
	add      bool
	redact   []string
}

func newRecordCmd(a *app) *cobra.Command {
	o := &recordOptions{app: a}
	cmd := &cobra.Command{
		Use:   "record --cassette FILE -- call|serve ...",
		Short: "Record real calls in a cassette that scenarios play",
		Long: `Run call or serve and record what the executors were asked and what they answered:
arguments, results, errors and times, in YAML that can be reviewed. A scenario
plays the file with spec.mocks.NAME.cassette.

Members named password, token and the like, what --redact names, and what
spec.redact of the tool names are masked; look at the file before you commit it.
A cassette that exists is replaced, unless --append is given.

--scenario writes a Scenario manifest, too, that makes the recorded calls again in their
order, against the cassette: add to it what you expect of the results, and what a person
answers to calls that need approval. It replaces no file.`,
		Annotations: formats("content", "json", "yaml", "text", "curl"),
		Example: `  toolctl record -f tools/ --cassette weather.yaml -- call get-weather -a location=Oslo
  toolctl record -f tools/ --cassette weather.yaml --append -- call get-weather -a location=Bergen
  toolctl record -f tools/ --cassette session.yaml -- serve
  toolctl record -f tools/ --cassette cassettes/chat.yaml --scenario chat.yaml -- serve`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.cassette == "" {
				return usagef("--cassette FILE is missing")
			}
			inner := recordable(a, args)
			if inner == nil {
				return usagef("expected a command to record: call or serve")
			}
			inner.SilenceErrors, inner.SilenceUsage = true, true
			inner.Flags().AddFlagSet(cmd.Root().PersistentFlags())
			inner.SetFlagErrorFunc(flagError)
			inner.PersistentPreRunE = a.checkFormat
			inner.SetArgs(args[1:])
			inner.SetOut(a.out)
			inner.SetErr(a.err)
			return o.run(cmd.Context(), inner)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows is the inner command's
	f.StringVar(&o.cassette, "cassette", "", "file to write")
	f.StringVar(&o.scenario, "scenario", "", "file of a Scenario to write, too, that makes the recorded calls again")
	f.BoolVar(&o.add, "append", false, "add to the cassette")
	f.StringArrayVar(&o.redact, "redact", nil, "JSON pointer or name of members to mask; may be repeated")
	return cmd
}

// recordable is the command that is recorded; nil when it is none that calls.
func recordable(a *app, args []string) *cobra.Command {
	if len(args) > 0 {
		switch args[0] {
		case "call":
			return newCallCmd(a)
		case "serve":
			return newServeCmd(a)
		}
	}
	return nil
}

func (o *recordOptions) run(ctx context.Context, inner *cobra.Command) error {
	if err := errors.Join(perm.Folder(filepath.Dir(o.cassette)), perm.File(o.cassette)); err != nil {
		return err
	}
	if o.scenario != "" {
		if !v1.IsName(o.scenarioName()) {
			return usagef("--scenario %s: the name of the file becomes that of the scenario: expected lower-case letters, digits and '-'", o.scenario)
		}
		if _, err := os.Lstat(o.scenario); err == nil {
			return usagef("--scenario %s: the file exists already, and may have been edited: name another one", o.scenario)
		}
	}
	var old *scenario.Cassette
	if o.add {
		var err error
		if old, err = readCassette(o.cassette); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	o.recorder = scenario.NewRecorder(o.redact)
	ran := inner.ExecuteContext(ctx) // a call that fails is recorded too
	c := o.recorder.Cassette()
	n := len(c.Calls)
	if dropped := o.recorder.Dropped(); dropped > 0 {
		fmt.Fprintf(o.err, "warning: %s beyond the first %d are not recorded\n", count(dropped, "call"), n)
	}
	if n == 0 {
		if ran == nil {
			ran = statusError{exitFailed, "nothing was called"}
		}
		return ran
	}
	if old != nil {
		c.Add(old)
	}
	if err := writeCassette(o.cassette, c); err != nil {
		return errors.Join(ran, err)
	}
	fmt.Fprintf(o.err, "recorded %s in %s\n", count(n, "call"), o.cassette)
	if o.scenario != "" {
		return errors.Join(ran, o.writeScenario())
	}
	return ran
}

func (o *recordOptions) scenarioName() string {
	return strings.TrimSuffix(filepath.Base(o.scenario), filepath.Ext(o.scenario))
}

// writeScenario writes the scenario of what was recorded, which names the cassette by its path
// from there.
func (o *recordOptions) writeScenario() error {
	folder := filepath.Dir(o.scenario)
	cassette, err := relativeTo(folder, o.cassette)
	if err != nil {
		return err
	}
	out, err := manifest.MarshalYAML(o.recorder.Scenario(o.scenarioName(), cassette))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(o.scenario, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(out)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(o.err, "wrote %s: 'toolctl test' runs it\n", o.scenario)
	return nil
}

// relativeTo is the path of a file as manifests in a folder name it.
func relativeTo(folder, file string) (string, error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	return filepath.ToSlash(rel), err
}

func readCassette(path string) (*scenario.Cassette, error) {
	data, err := regular.ReadFile(path)
	if err != nil {
		return nil, err
	}
	raw, violations := manifest.ToJSON(path, data)
	for _, f := range violations {
		if !f.IsWarning() {
			return nil, statusError{exitInvalid, f.String()}
		}
	}
	c, err := scenario.ReadCassette(raw)
	if err != nil {
		return nil, statusError{exitInvalid, fmt.Sprintf("%s: %v", path, err)}
	}
	return c, nil
}

func writeCassette(path string, c *scenario.Cassette) error {
	out, err := manifest.MarshalYAML(c)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("# Recorded by toolctl record. Review it: what is masked is listed under redacted.\n")
	b.Write(out)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}
