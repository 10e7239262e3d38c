package scenario

import (
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/validate"
)

// record returns a call for the report.
func (p *player) record(asked v1.Call, res v1.Result, executed bool) Call {
	c := Call{Tool: asked.Tool, Args: asked.Args, Result: res, raw: asked.Args, executed: executed}
	if !json.Valid(c.Args) { // a model wrote malformed JSON
		c.Args = nil
		if len(asked.Args) > 0 {
			c.Args = jsontext.Of(string(asked.Args))
		}
	}
	if item, err := p.reg.Lookup(asked.Namespace, asked.Tool); err == nil {
		tool := item.Tool()
		c.key = tool.Key()
		c.Args = redact.JSON(c.Args, tool.RedactRules())
	}
	return c
}

// args returns the decoded arguments of a call: an empty object if the call has no arguments, and nil if they are not
// valid JSON.
func (c *Call) args() any {
	if len(c.raw) == 0 {
		return map[string]any{}
	}
	doc, err := validate.Decode(c.raw)
	if err != nil {
		return nil
	}
	return doc
}

// name returns the tool's name in the registry, or in the call if the registry has no such tool.
func (c *Call) name() string { return c.Result.Tool }

func redacted(doc any, tool *v1.Tool) any {
	if len(tool.RedactRules()) == 0 {
		return doc
	}
	masked, err := validate.Decode(redact.JSON(jsontext.Of(doc), tool.RedactRules()))
	if err != nil {
		return redact.Mask
	}
	return masked
}
