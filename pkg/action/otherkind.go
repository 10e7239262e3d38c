package action

import (
	"errors"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// OtherKind extends the error for a name that no object of a kind has. If an object of another kind has the name, the
// error names it and explains how to use it.
func (w *Workspace) OtherKind(kind, namespace, name string, err error) error {
	var missing *v1.NotFoundError
	if !errors.As(err, &missing) || missing.Ambiguous || missing.Kind != kind {
		return err
	}
	for _, other := range []struct{ kind, is string }{
		{v1.KindTool, "a Tool: 'toolctl call NAME' calls it"},
		{v1.KindPrompt, "a Prompt: 'toolctl render NAME' fills it in, 'toolctl run NAME' runs it with a model"},
		{v1.KindMCPServer, "an MCPServer: its tools are called NAME__TOOL, and 'toolctl list tools' lists them"},
		{v1.KindScenario, "a Scenario: 'toolctl test' runs it"},
		{v1.KindToolPolicy, "a ToolPolicy: 'toolctl describe policy/NAME' shows it"},
		{v1.KindToolset, "a Toolset: 'toolctl serve --toolset NAME' serves it"},
	} {
		if _, gerr := w.Registry.Get(other.kind, namespace, name); other.kind != kind && gerr == nil {
			return fmt.Errorf("%w: it is %s", &v1.NotFoundError{Kind: kind, Name: name}, strings.ReplaceAll(other.is, "NAME", name))
		}
	}
	return err
}
