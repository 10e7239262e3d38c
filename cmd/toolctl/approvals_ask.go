package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/argtext"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/registry"
)

// canAsk reports whether the command runs in a terminal where it can ask the user.
func (a *app) canAsk() bool {
	in, ok := a.in.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && isTerminal(a.out)
}

// confirm asks the user a question; no answer means no.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(a.err, question, " [y/N] ")
	answer, err := bufio.NewReader(tty.Stdin(ctx, a.in)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return isYes(answer), nil
}

func isYes(answer string) bool {
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// asker asks the user to allow or deny calls, one call at a time.
func (a *app) asker() registry.Asker {
	lines := tty.NewLines(a.in)
	return func(ctx context.Context, p v1.PendingToolInfo) (v1.Decision, bool, error) {
		if p.MayAsk("") != nil || len(p.Args) > v1.MaxPendingArgs { // other people decide
			return v1.Decision{}, false, nil //nolint:nilerr // nobody reads them here
		}
		args, err := argtext.Whole(p.Args)
		if err != nil {
			return v1.Decision{}, false, err
		}
		line, err := lines.Ask(ctx, func() {
			fmt.Fprintf(a.err, "%s:\n%s\nAllow this call? [y/N] ", clip.Line(p.Message), indented(args))
		})
		if err != nil && (!errors.Is(err, io.EOF) || line == "") {
			fmt.Fprintln(a.err)
			return v1.Decision{}, false, ctx.Err() // nobody has answered, which is not an error
		}
		return v1.Decision{Approved: isYes(line), By: a.whoami()}, true, nil
	}
}

func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// pendingText explains how to approve a call and how to continue then.
func (a *app) pendingText(stored bool, p *v1.PendingToolInfo) string {
	text := "pending: " + p.Message
	if !stored {
		return text + "; no store to save the request: pass --store, or call from a terminal"
	}
	where := ""
	if a.conf.DSN != "" {
		where = " --store " + shellWord(a.shownDSN())
	}
	text += fmt.Sprintf("\n  read all of it with toolctl approvals show %[1]s%[2]s\n  approve it with     toolctl approvals approve %[1]s%[2]s", p.ID, where)
	if who := p.Deciders(); who != "" {
		text += "\n  by                  " + who + " (--as and --as-group name the person who decides)"
	}
	if p.ExpiresAt != nil {
		text += "\n  before              " + clock(*p.ExpiresAt)
	}
	return text + "\n  then repeat the call (from another session, add --approval " + p.ID + ")"
}

// shellWord quotes a word for a shell.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
