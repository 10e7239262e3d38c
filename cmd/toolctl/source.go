package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/source/oci"
)

// sourceOptions are the flags of where manifests are pulled from.
type sourceOptions struct {
	address    string
	interval   time.Duration
	signed     string
	hookSecret string // file
	rollback   bool

	at source.Address // what check read of address
}

const hookSecretVariable = "TOOLCTL_HOOK_SECRET" //nolint:gosec // it is the name of one

func (o *sourceOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.address, "source", "", "pull manifests from `ADDRESS`: git+https://HOST/REPOSITORY//PATH?ref=REF, git+ssh://…, git+file:///… or oci://HOST/REPOSITORY@sha256:…")
	f.DurationVar(&o.interval, "interval", 30*time.Second, "with --source: how often to check for a new revision")
	f.StringVar(&o.signed, "require-signed", "", "with --source: accept only revisions signed by a key in this file: SSH allowed signers or OpenPGP public keys for commits, PEM public keys for packages")
	f.BoolVar(&o.rollback, "allow-rollback", false, "with --source: accept commits that do not descend from the previous one, as after a force push")
}

const shortestInterval = time.Second

// check reads the flags; what else reads them comes after it.
func (o *sourceOptions) check(cmd *cobra.Command, files []string) (err error) {
	if o.address == "" {
		for _, name := range []string{"interval", "require-signed", "hook-secret-file", "allow-rollback"} {
			if cmd.Flags().Changed(name) {
				return usagef("--%s needs --source", name)
			}
		}
		return nil
	}
	if len(files) > 0 {
		return usagef("--source and -f cannot be used together: name one place where the manifests are")
	}
	if o.interval < shortestInterval {
		return usagef("--interval %s: expected %s or more", o.interval, shortestInterval)
	}
	if o.at, err = source.ParseAddress(o.address); err != nil {
		return usagef("--source: %w", err)
	}
	return nil
}

// origin opens what the address names.
func (o *sourceOptions) origin(a *app) (source.Origin, error) {
	if o.at.IsGit() {
		origin, err := source.NewRepository(o.at, source.RepositoryOptions{Environ: os.Environ(), RequireSigned: o.signed})
		if err != nil {
			return nil, usagef("--require-signed: %w", err)
		}
		return origin, nil
	}
	repository, err := oci.Open(o.at, oci.Options{Env: a.env})
	if err != nil {
		return nil, usagef("--source: %w", err)
	}
	origin, err := oci.NewOrigin(repository, o.signed)
	if err != nil {
		return nil, usagef("--source, --require-signed: %w", err)
	}
	return origin, nil
}

// remote opens the source. check says what else is wrong with a set.
func (o *sourceOptions) remote(a *app, older bool, read manifest.Options, check func(context.Context, *manifest.Set) ([]v1.Violation, error)) (*source.Remote, error) {
	origin, err := o.origin(a)
	if err != nil {
		return nil, err
	}
	return source.NewRemote(origin, source.RemoteOptions{Interval: o.interval, Older: older, AllowRollback: o.rollback, Manifests: read, Check: check, Logger: a.logger()}), nil
}

// hook takes webhooks; nil when no secret is given.
func (o *sourceOptions) hook(a *app, r *source.Remote) (http.Handler, error) {
	secret, _ := a.env(hookSecretVariable)
	from := hookSecretVariable
	if o.hookSecret != "" {
		text, err := regular.ReadFile(o.hookSecret)
		if err != nil {
			return nil, usagef("--hook-secret-file: %w", err)
		}
		secret, from = strings.TrimRight(string(text), "\r\n"), o.hookSecret
	} else if secret == "" {
		return nil, nil
	}
	h, err := source.NewHook(secret, r.Pull)
	if err != nil {
		return nil, statusError{exitInvalid, from + ": " + err.Error()}
	}
	return h, nil
}

// pulledFrom is a source of a gateway whose errors have exit codes.
type pulledFrom struct{ *source.Remote }

func (p pulledFrom) Load(ctx context.Context) (*manifest.Set, error) {
	set, err := p.Remote.Load(ctx)
	return set, action.SourceError(err)
}

// sourceLine says which revision of a source is used since when.
func sourceLine(s *source.Status) string {
	if s.Since == nil {
		return "none"
	}
	text := fmt.Sprintf("%s since %s", s.Revision, s.Since.Format(time.RFC3339))
	if s.RolledBackFrom != "" {
		text += ", rolled back from " + s.RolledBackFrom
	}
	return text
}
