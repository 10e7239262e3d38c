package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
)

// parsed adds a flag whose text is parsed into a value. If the default is the empty text, the empty text sets the zero
// value.
func parsed[T any](f *pflag.FlagSet, into *T, name, value string, read func(string) (T, error), usage string) {
	v := &parsedValue[T]{optional: value == "", into: into, read: read}
	_ = v.Set(value) // defaults are valid
	f.Var(v, name, usage)
}

type parsedValue[T any] struct {
	text     string
	optional bool
	into     *T
	read     func(string) (T, error)
}

func (v *parsedValue[T]) String() string { return v.text }
func (v *parsedValue[T]) Type() string   { return "string" }

func (v *parsedValue[T]) Set(text string) (err error) {
	if v.text = text; text == "" && v.optional {
		*v.into = *new(T)
		return nil
	}
	if *v.into, err = v.read(text); err != nil {
		return &expectedError{err}
	}
	return nil
}

// expectedError says which values a flag expects.
type expectedError struct{ error }

// bindChoice adds a flag that accepts one of some words, and completes them. The default is the value of into.
func bindChoice(cmd *cobra.Command, into *string, name, usage string, words ...string) {
	parsed(cmd.Flags(), into, name, *into, func(text string) (string, error) {
		const few = 4
		switch last := len(words) - 1; {
		case slices.Contains(words, text):
			return text, nil
		case last < few:
			return text, fmt.Errorf("%s or %s", strings.Join(words[:last], ", "), words[last])
		}
		return text, fmt.Errorf("one of %s%s", strings.Join(words, ", "), v1.DidYouMean(text, words))
	}, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, noFiles))
}

// parseBytes reads a number of bytes, such as 256MiB, 256Mi, 1GB or 1000000.
func parseBytes(text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n < 1 || n > math.MaxInt64 {
		return 0, errors.New("a number of bytes, such as 256MiB, 1GiB or 268435456")
	}
	return int64(n), nil
}

// parseRate reads N/s, N/m or N/h, and returns the number per second.
func parseRate(text string) (float64, error) {
	number, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	per, ok := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	if err != nil || !ok || !(n > 0) || math.IsInf(n, 0) {
		return 0, errors.New("a positive number per second, minute or hour, such as 100/s, 600/m or 5000/h")
	}
	return n / per.Seconds(), nil
}

// need lists flags that need another flag, and says why.
type need struct {
	flag, why string
	of        []string
}

// checkNeeds refuses flags without the flag that they need.
func checkNeeds(f *pflag.FlagSet, needs []need) error {
	for _, n := range needs {
		if v := f.Lookup(n.flag).Value.String(); v != "" && v != "false" {
			continue
		}
		for _, name := range n.of {
			if f.Changed(name) {
				return usagef("--%s needs --%s%s", name, n.flag, n.why)
			}
		}
	}
	return nil
}

// limit says whether the command accepts the value of a flag, and which values it expects.
type limit struct {
	flag     string
	ok       bool
	expected string
}

// checkLimits refuses the first value that is not accepted.
func checkLimits(f *pflag.FlagSet, limits ...limit) error {
	for _, l := range limits {
		if !l.ok {
			return usagef("--%s %s: expected %s", l.flag, f.Lookup(l.flag).Value, l.expected)
		}
	}
	return nil
}

// bindRetention adds --audit-retention.
func bindRetention(f *pflag.FlagSet, into *time.Duration, usage string) {
	parsed(f, into, "audit-retention", "", func(text string) (time.Duration, error) {
		d, ok := parseAgo(text)
		if !ok || d <= 0 {
			return 0, errors.New("a time above 0, such as 90d, 12w or 36h")
		}
		return d, nil
	}, usage+", such as 90d, 12w or 36h (default: keep all records)")
}

// bindPull adds the flags for pulling manifests from a repository.
func bindPull(f *pflag.FlagSet, p *action.Pull) {
	f.StringVar(&p.Address, "source", "", "pull manifests from `ADDRESS`: git+https://HOST/REPOSITORY//PATH?ref=REF, git+ssh://…, git+file:///… or oci://HOST/REPOSITORY@sha256:…")
	f.DurationVar(&p.Interval, "interval", 30*time.Second, "with --source: how often to check for a new revision")
	f.StringVar(&p.RequireSigned, "require-signed", "", "with --source: accept only revisions signed by a key in this file: SSH allowed signers or OpenPGP public keys for commits, PEM public keys for packages")
	f.BoolVar(&p.AllowRollback, "allow-rollback", false, "with --source: accept commits that do not descend from the previous one, as after a force push")
}
