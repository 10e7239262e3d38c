package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/lint"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

type lintOptions struct {
	*app
	lint.Options
	failOn, selector string
	rules            bool
}

func newLintCmd(a *app) *cobra.Command {
	o := &lintOptions{app: a, failOn: "error"}
	cmd := &cobra.Command{
		Use:   "lint [PATH]...",
		Short: "Check manifests for likely mistakes and risks",
		Long: `Report what clients or model providers reject, what misleads models, and what lacks
safeguards. Nothing is called or fetched. PATH is the same as -f; without either, lint
reads the current folder. It reads the tools of MCP servers from toolctl.lock.

To ignore a rule for one object, annotate the object with the reason:
  ignore-lint.toolctl.dev/no-output-schema: the service has none

The exit code is 1 for findings at or above --fail-on; it is 3 for manifests with
errors, as in 'toolctl validate'. docs/lint.md explains each rule.

Output formats (-o): text (the default), json, sarif (2.1.0, for code scanning),
github (workflow annotations).`,
		Annotations: formats("text", "json", "sarif", "github"),
		Example: `  toolctl lint manifests/
  toolctl lint --fail-on warning --skip no-output-schema
  toolctl lint --max-tokens 8000 -o sarif > lint.sarif
  toolctl lint --rules`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	bindChoice(cmd, &o.failOn, "fail-on", "exit with code 1 for findings at or above this severity: error, warning, info, or none", "error", "warning", "info", "none")
	f.IntVar(&o.MaxTokens, "max-tokens", 0, "maximum number of tokens of all tool definitions together, estimated at 4 bytes per token; 0 means no limit")
	f.StringSliceVar(&o.Only, "only", nil, "rules to check; may be repeated (default: all)")
	f.StringSliceVar(&o.Skip, "skip", nil, "rules to skip; may be repeated")
	f.BoolVar(&o.rules, "rules", false, "list the rules")
	complete := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return ruleIDs(), noFiles
	}
	bindSelector(cmd.Flags(), &o.selector, "findings about objects")
	_ = cmd.RegisterFlagCompletionFunc("only", complete)
	_ = cmd.RegisterFlagCompletionFunc("skip", complete)
	return cmd
}

func ruleIDs() []string {
	var ids []string
	for _, r := range lint.Rules() {
		ids = append(ids, r.ID)
	}
	return ids
}

func (o *lintOptions) checkFlags() error {
	if o.MaxTokens < 0 {
		return usagef("--max-tokens %d: expected 0 or more", o.MaxTokens)
	}
	ids := ruleIDs()
	for _, id := range slices.Concat(o.Only, o.Skip) {
		if !slices.Contains(ids, id) {
			return usagef("there is no rule %q%s: 'toolctl lint --rules' lists them", id, v1.DidYouMean(id, ids))
		}
	}
	return nil
}

func (o *lintOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.checkFlags(); err != nil {
		return err
	}
	if o.rules {
		return o.printRules()
	}
	check, only, err := o.checking(cmd.Context(), args, o.selector)
	if err != nil {
		return err
	}
	l := action.Lint{Check: check, Only: only, LockFile: o.conf.Gateway.LockFile, Lint: o.Options}
	r, err := l.Run(cmd.Context())
	if err != nil {
		return err
	}
	for _, v := range r.Errors {
		fmt.Fprintln(o.err, v)
	}
	if len(r.Errors) == 0 || len(r.Findings) > 0 || o.format() != "text" { // otherwise there is nothing to count
		if err := o.print(r.Report, r.Objects); err != nil {
			return err
		}
	}
	if errs := len(r.Errors); errs > 0 {
		return statusError{exitInvalid, fmt.Sprintf("%s in %s: lint needs manifests without errors", count(errs, "error"), count(r.Files, "file"))}
	}
	if grave := slices.ContainsFunc(r.Findings, func(f lint.Finding) bool { return f.Severity.AtLeast(lint.Severity(o.failOn)) }); grave && o.failOn != "none" {
		return statusError{exitFailed, ""}
	}
	return nil
}

func (o *lintOptions) printRules() error {
	rules := lint.Rules()
	if o.format() != "text" {
		return printJSON(o.out, map[string]any{"rules": rules})
	}
	for _, r := range rules {
		fmt.Fprintf(o.out, "%s (%s): %s\n    %s\n", r.ID, r.Severity, r.Summary, r.Fix)
	}
	return nil
}

func (o *lintOptions) print(r lint.Report, objects int) error {
	switch o.format() {
	case "json":
		return printJSON(o.out, r)
	case "sarif":
		return printJSON(o.out, r.SARIF(buildVersion().Version))
	case "github":
		for _, f := range r.Findings {
			level := map[lint.Severity]string{lint.Info: "notice"}[f.Severity]
			fmt.Fprintln(o.out, report.WorkflowCommand(cmp.Or(level, string(f.Severity)), f.Source, f.Rule+": "+findingText(f)+". "+f.Fix))
		}
		return nil
	}
	for _, f := range r.Findings {
		place := ""
		if !f.Source.IsZero() {
			place = f.Source.String() + ": "
		}
		fmt.Fprintf(o.out, "%s%s: %s [%s]\n    %s\n", place, f.Severity, clip.Line(findingText(f)), f.Rule, clip.Line(f.Fix))
	}
	n := r.Count()
	ignored := ""
	if len(r.Ignored) > 0 {
		ignored = fmt.Sprintf(", %d ignored", len(r.Ignored))
	}
	fmt.Fprintf(o.out, "%s, %s, %s%s in %s; %s offered, about %s (%s)\n",
		count(n[lint.Error], "error"), count(n[lint.Warning], "warning"), count(n[lint.Info], "note"), ignored, count(objects, "object"), count(r.Tokens.Tools, "tool"), count(r.Tokens.Total, "token"), r.Tokens.Estimate)
	return nil
}

func findingText(f lint.Finding) string {
	text := fmt.Sprintf("%s %s", f.Kind, f.Name)
	if f.Namespace != v1.DefaultNamespace {
		text = fmt.Sprintf("%s %s/%s", f.Kind, f.Namespace, f.Name)
	}
	if f.Path != "" {
		text += ": " + v1.FieldPath(f.Path)
	}
	return strings.TrimSpace(text) + ": " + f.Message
}
