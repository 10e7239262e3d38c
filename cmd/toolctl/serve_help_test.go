package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/permit"
)

// TestServeFlagGroups checks that the help of serve lists every flag once, under a heading.
func TestServeFlagGroups(t *testing.T) {
	cmd := newServeCmd(&app{conf: action.Config{Permit: &permit.Rules{}}})
	cmd.InitDefaultHelpFlag()
	for first, title := range serveHeadings {
		if cmd.Flags().Lookup(first) == nil {
			t.Errorf("group %s begins with --%s, which serve does not have", title, first)
		}
	}
	var out bytes.Buffer
	cmd.SetOut(&out)
	if err := serveUsage(cmd); err != nil {
		t.Fatal(err)
	}
	_, groups, _ := strings.Cut(out.String(), "\nListening:\n")
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		listed := regexp.MustCompile(`(?m)^ +(-\w, )?--`+f.Name+` `).FindAllString(groups, -1)
		if !f.Hidden && len(listed) != 1 {
			t.Errorf("the help lists --%s %d times, expected once", f.Name, len(listed))
		}
	})
	for _, title := range serveHeadings {
		if title != "Listening" && !strings.Contains(groups, "\n"+title+":\n") {
			t.Errorf("the help has no group %s", title)
		}
	}
}
