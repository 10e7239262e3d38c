package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/store"
)

// Exit codes. They are defined only here; docs/exit-codes.md describes them.
const (
	exitOK          = 0
	exitFailed      = 1 // the tool reported failure, a scenario failed, diff found differences, an import conflicts
	exitUsage       = 2
	exitInvalid     = 3 // a manifest, arguments or a result breaks its rules or schema
	exitRefused     = 4 // a policy refused the call, or an address is not allowed
	exitNotFound    = 5 // no object has the name, or the name is ambiguous
	exitPending     = 6 // the call or run is pending approval
	exitUnavailable = 7 // the upstream could not be reached, the store is locked, or time ran out
	exitInterrupted = 130
)

// usageError reports wrong usage.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// statusError ends the command with an exit code and prints the text, if there is one.
type statusError struct {
	code int
	text string
}

func (e statusError) Error() string { return e.text }

func exitCode(err error) int {
	var (
		status statusError
		exec   *v1.ExecutionError
		mcp    *v1.MCPError
		model  *agent.ModelError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return status.code
	case errors.Is(err, context.Canceled), errors.Is(err, tty.ErrInterrupted):
		return exitInterrupted
	case errors.As(err, new(*action.UnavailableError)):
		return exitUnavailable
	case errors.As(err, new(*action.InvalidError)):
		return exitInvalid
	case errors.As(err, new(usageError)), errors.As(err, new(*action.UsageError)), errors.As(err, new(*store.NameError)):
		return exitUsage
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy), errors.As(err, new(*action.NotReadyError)):
		return exitUnavailable
	case errors.As(err, new(*v1.ValidationError)), errors.As(err, new(*perm.Error)):
		return exitInvalid
	case errors.As(err, new(*v1.PolicyError)), errors.As(err, new(*netaddr.PrivateError)):
		return exitRefused
	case errors.As(err, new(*v1.NotFoundError)), errors.As(err, new(*action.EmptyError)):
		return exitNotFound
	case errors.As(err, &exec):
		switch exec.Phase {
		case v1.PhaseConnect, v1.PhaseTimeout:
			return exitUnavailable
		case v1.PhaseValidate:
			return exitInvalid
		}
		return exitFailed
	case errors.As(err, &mcp):
		if mcp.Code != 0 { // the server was reached, and answered with an error
			return exitFailed
		}
		return exitUnavailable
	case errors.As(err, &model):
		const tooManyRequests, serverError = 429, 500
		if model.Status == tooManyRequests || model.Status >= serverError {
			return exitUnavailable
		}
	case errors.Is(err, context.DeadlineExceeded):
		return exitUnavailable
	}
	return exitFailed
}

// report prints an error and returns its exit code. After wrong usage it also names the help of the command.
func (a *app) report(command string, err error) int {
	code := exitCode(err)
	var invalid *v1.ValidationError
	switch text := v1.Detailed(err); {
	case text == "":
	case code == exitInterrupted:
		fmt.Fprintln(a.err, "error: interrupted")
	case errors.As(err, &invalid) && len(invalid.Violations) > 1:
		// Print one violation per line; the text of the error has all violations in one line.
		first, _, _ := strings.Cut(text, ": "+invalid.Violations[0].String())
		what := "violations"
		if invalid.Type == v1.ManifestInvalid {
			what = "errors"
		}
		fmt.Fprintf(a.err, "error: %s: %d %s\n", saidOnce(first), len(invalid.Violations), what)
		for _, f := range invalid.Violations {
			fmt.Fprintf(a.err, "  %s\n", f)
		}
	default:
		fmt.Fprintf(a.err, "error: %s\n", saidOnce(text))
	}
	if code == exitUsage {
		fmt.Fprintf(a.err, "Run '%s --help' for usage.\n", command)
	}
	return code
}

// ownError matches "error:" at the beginning of messages of servers and programs that our errors quote.
var ownError = regexp.MustCompile(`(^|: | is ")(?i:(?:error: *)+)`)

// saidOnce removes "error:" from a text, because report prints it in front.
func saidOnce(text string) string { return ownError.ReplaceAllString(text, "$1") }
