package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/rollout"
)

// statedObject is an object that is printed with its status.
type statedObject struct {
	v1.Object
	status v1.Status
}

// MarshalJSON adds the status behind the fields of the manifest.
func (o statedObject) MarshalJSON() ([]byte, error) {
	text, err := jsontext.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	status, err := jsontext.Marshal(o.status)
	if err != nil {
		return nil, err
	}
	text = append(text[:len(text)-1], `,"status":`...)
	return append(append(text, status...), '}'), nil
}

// showsStatus reports whether a format of list shows the status of objects. The manifests of
// files are shown as they are written.
func showsStatus(format string, files bool) bool {
	name, template, _ := strings.Cut(format, "=")
	return !files && (name == "json" || name == "yaml") || strings.Contains(template, "status")
}

// describeStatus shows how an object of the store stands.
func (a *app) describeStatus(s *v1.Status) error {
	line := func(key, value string) { fmt.Fprintf(a.out, "%-13s%s\n", key+":", clip.Line(value)) }
	if s.Set != "" {
		line("Set", rollout.Name(s.Set))
		line("Revision", strconv.FormatInt(s.Revision, 10))
		line("Commit", cmp.Or(s.Commit, "-"))
	}
	fmt.Fprintln(a.out, "Conditions:")
	t := newTable(a.out, "  TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")
	for _, c := range s.Conditions {
		t.row("  "+c.Type, c.Status, clock(c.LastTransitionTime), c.Reason, clip.Words(inspect.Show(c.Message), 160))
	}
	return t.Flush()
}
