package scripted

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/agent"
)

// MismatchError says that a request differs from what the script expects.
type MismatchError struct {
	// Reply is the number of the reply, from 1, whose sees does not match.
	Reply int
	// Field is the member of sees that does not match: tools, tool_choice, contains or lacks. For the last two, Index is
	// the index of the text, from 0.
	Field string
	Index int
	// Expected and Got describe the difference.
	Expected, Got string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("reply %d of the script: sees.%s: expected %s, got %s", e.Reply, e.Field, e.Expected, e.Got)
}

// ResultErrorType returns the type of the error in a result.
func (e *MismatchError) ResultErrorType() string { return "script_mismatch" }

// sees compares a request with the expectations of a reply.
func sees(want *v1.ModelSees, req agent.Request) *MismatchError {
	if want == nil {
		return nil
	}
	if want.Tools != nil {
		offered := make([]string, len(req.Tools))
		for i, t := range req.Tools {
			offered[i] = t.Name
		}
		slices.Sort(offered) // the order in a script does not matter
		expected := slices.Sorted(slices.Values(want.Tools))
		if !slices.Equal(expected, offered) {
			return &MismatchError{Field: "tools", Expected: listed(expected), Got: listed(offered)}
		}
	}
	choice := cmp.Or(req.ToolChoice, v1.ToolChoiceAuto)
	if want.ToolChoice != "" && want.ToolChoice != choice {
		return &MismatchError{Field: "tool_choice", Expected: want.ToolChoice, Got: choice}
	}
	if len(want.Contains)+len(want.Lacks) == 0 {
		return nil
	}
	shown := news(req)
	for i, text := range want.Contains {
		if !strings.Contains(shown, text) {
			return &MismatchError{Field: "contains", Index: i, Expected: fmt.Sprintf("a text with %q", text), Got: fmt.Sprintf("%q", clip.Bytes(shown, 2000))}
		}
	}
	for i, text := range want.Lacks {
		if strings.Contains(shown, text) {
			return &MismatchError{Field: "lacks", Index: i, Expected: fmt.Sprintf("a text without %q", text), Got: fmt.Sprintf("%q", clip.Bytes(shown, 2000))}
		}
	}
	return nil
}

// news returns the messages since the model's last one. Before the model's first message,
// this includes the system message.
func news(req agent.Request) string {
	first := 0
	for i, m := range req.Messages {
		if m.Role == agent.RoleAssistant {
			first = i + 1
		}
	}
	var said []string
	if first == 0 && req.System != "" {
		said = append(said, req.System)
	}
	for _, m := range req.Messages[first:] {
		said = append(said, m.Text)
	}
	return strings.Join(said, "\n")
}

func listed(names []string) string {
	if len(names) == 0 {
		return "no tools"
	}
	return strings.Join(names, ", ")
}
