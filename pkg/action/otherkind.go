package action

import (
	"errors"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// OtherKind adds to the error about a name that fits no object of a kind which other kind has
// an object of that name, and what to do with it.
func (w *Workspace) OtherKind(kind, namespace, name string, err error) error {
	var missing *v1.NotFoundError
	if !errors.As(err, &missing) || missing.Ambiguous || missing.Kind != kind {
		return err
	}
	for _, other := range []struct{ kind, is string }{
		{v1.KindTool, "a Tool: 'toolctl call NAME' calls it"},
		{v1.KindPrompt, "a Prompt: 'toolctl render NAME' fills it in, 'toolctl run NAME' plays it against a model"},
		{v1.KindMCPServer, "an MCPServer: its tools are called NAME__TOOL, 'toolctl list tools' lists them"},
		{v1.KindScenario, "a Scenario: 'toolctl test' plays it"},
		{v1.KindToolPolicy, "a ToolPolicy: 'toolctl describe policy/NAME' shows it"},
	} {
		if _, gerr := w.Registry.Get(other.kind, namespace, name); other.kind != kind && gerr == nil {
			return fmt.Errorf("%w: it is %s", &v1.NotFoundError{Kind: kind, Name: name}, strings.ReplaceAll(other.is, "NAME", name))
		}
	}
	return err
}
