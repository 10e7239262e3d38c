package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/agent"
)

// runView shows the progress of a run on a terminal, or anywhere with --verbose.
type runView struct {
	w      io.Writer // nil if progress is not shown
	out    io.Writer // for the text of the model if it is streamed, else nil
	inText bool      // the last output was text without a line break
}

func (o *runOptions) newRunView(format string) *runView {
	v := &runView{}
	if isTerminal(o.err) || o.verbose {
		v.w = o.err
	}
	if o.Agent.Stream && format == "text" {
		v.out = o.out
	}
	return v
}

// event receives the events of a run, one at a time.
func (v *runView) event(e agent.Event) {
	if e.Kind == agent.EventDelta {
		if v.out != nil && e.Depth == 1 && e.Delta.Text != "" {
			fmt.Fprint(v.out, screenText(v.out, e.Delta.Text))
			v.inText = !strings.HasSuffix(e.Delta.Text, "\n")
		}
		return
	}
	if e.Kind == agent.EventReply {
		v.endText(e.Depth)
	}
	if v.w == nil {
		return
	}
	indent := strings.Repeat("    ", e.Depth-1)
	switch e.Kind {
	case agent.EventHop:
		v.line("%shop %d: %s asks the model, %s offered", indent, e.Number, e.Prompt, count(len(e.Hop.Tools), "tool"))
	case agent.EventReply:
		u := e.Hop.Usage
		v.line("%shop %d: %s after %s, %s in and %d out", indent, e.Number, cmp.Or(e.Hop.Stop, "done"), clip.Milliseconds(e.Hop.DurationMS), count(int(u.InputTokens), "token"), u.OutputTokens)
	case agent.EventCall:
		v.line("%s  %s %s", indent, e.Call.Name, clip.Words(clip.Line(string(e.Call.Args)), 100))
	case agent.EventResult:
		v.line("%s  %s %s", indent, e.Call.Name, outcomeText(e.Call))
	}
}

func (v *runView) line(format string, args ...any) {
	fmt.Fprintln(v.w, clip.Line(fmt.Sprintf(format, args...)))
}

// endText ends the line of streamed text.
func (v *runView) endText(depth int) {
	if v.out != nil && v.inText && depth == 1 {
		fmt.Fprintln(v.out)
		v.inText = false
	}
}

func (v *runView) end() { v.endText(1) }

func outcomeText(c *agent.Call) string {
	text := c.Result.Status
	switch {
	case c.Cached:
		text += ", cached"
	case c.Result.DurationMS > 0:
		text += " after " + clip.Milliseconds(c.Result.DurationMS)
	}
	if c.Result.Repair != "" {
		text += ", its arguments were " + c.Result.Repair
	}
	if e := c.Result.Error; e != nil {
		text += ": " + e.Type + ": " + clip.Words(clip.Line(e.Message), 200)
	}
	if c.Result.Status == v1.StatusPending && c.Result.Pending != nil {
		text += ": " + c.Result.Pending.Message
	}
	return text
}
