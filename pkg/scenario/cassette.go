package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
)

// Values of Cassette.Match.
const (
	matchExact  = "exact"
	matchSubset = "subset"
)

// Cassette is a file of recorded calls, sorted by tool and arguments.
type Cassette struct {
	// Match is how arguments are compared: exact, or subset, which allows a call to have
	// additional arguments. Default: exact.
	Match string `json:"match,omitempty"`
	// Ignore lists JSON pointers (RFC 6901) of arguments that are not compared.
	Ignore []string `json:"ignore,omitempty"`
	// Redacted are the rules that masked arguments and results. The arguments of a call are
	// masked with the same rules before they are compared.
	Redacted []string `json:"redacted,omitempty"`
	// Calls are the recorded calls. Equal calls are played in order, and the last one repeatedly.
	Calls []Recorded `json:"calls"`
}

// Recorded is one recorded call.
type Recorded struct {
	// Tool is the tool as namespace/name.
	Tool string `json:"tool"`
	// Args are the arguments as they reached the executor.
	Args json.RawMessage `json:"args"`
	// Result is the content of the result, and Parts are its parts.
	Result json.RawMessage `json:"result,omitempty"`
	Parts  []v1.Part       `json:"parts,omitempty"`
	// Error is set if the call failed.
	Error *RecordedError `json:"error,omitempty"`
	// DurationMS is the duration of the call in milliseconds.
	DurationMS float64 `json:"duration_ms,omitempty"`
}

// RecordedError is the error of a recorded call.
type RecordedError struct {
	// Type is the type of the [v1.ResultError].
	Type    string `json:"type"`
	Message string `json:"message"`
	// Server and Code are set for an MCP error.
	Server string `json:"server,omitempty"`
	Code   int64  `json:"code,omitempty"`
	// Answered says that the tool itself reported the failure.
	Answered bool `json:"answered,omitempty"`
}

// err returns the error as the executor returned it.
func (e *RecordedError) err(tool string) error {
	phase := v1.PhaseExecute
	switch e.Type {
	case v1.TypeMCPError:
		return &v1.MCPError{Server: e.Server, Code: e.Code, Message: e.Message}
	case v1.TypeConnectFailed:
		phase = v1.PhaseConnect
	case v1.TypeTimeout:
		phase = v1.PhaseTimeout
	case v1.ResultInvalid:
		phase = v1.PhaseValidate
	}
	return &v1.ExecutionError{Tool: tool, Phase: phase, Message: e.Message}
}

// tape plays the calls of one tool.
type tape struct {
	name   string // name of the file
	field  string
	subset bool
	ignore []string
	redact []string
	calls  []taped
}

type taped struct {
	*Recorded
	number int // position in the file, from 1
	args   any
	played bool
}

// newTape reads the cassette of a mock. An invalid cassette fails the scenario. A recorded
// result that no longer fits the schema is a warning.
func (p *player) newTape(field string, m *v1.Mock, tool *v1.Tool) *tape {
	field += "/cassette"
	t := &tape{name: m.Cassette, field: field}
	data, ok := p.res.scenario.Files[m.Cassette]
	if !ok {
		p.invalid(field, fmt.Sprintf("the cassette %q does not exist: record it with 'toolctl record --cassette FILE -- call ...'", m.Cassette))
		return t
	}
	if p.runner.opts.ToJSON == nil {
		p.invalid(field, "cassettes cannot be read here")
		return t
	}
	raw, violations := p.runner.opts.ToJSON(m.Cassette, data)
	if errs := v1.Errors(violations); len(errs) > 0 {
		p.invalid(field, errs[0].String())
		return t
	}
	c, err := ReadCassette(raw)
	if err != nil {
		p.invalid(field, fmt.Sprintf("the cassette %q: %v", m.Cassette, err))
		return t
	}
	t.subset = c.Match == matchSubset
	if m.Match != "" {
		t.subset = m.Match == matchSubset
	}
	t.ignore = slices.Concat(c.Ignore, m.Ignore)
	t.redact = slices.Concat(c.Redacted, tool.RedactRules())
	for i := range c.Calls {
		rec := &c.Calls[i]
		if rec.Tool != tool.Namespace()+"/"+tool.Metadata.Name && rec.Tool != tool.Metadata.Name {
			continue
		}
		t.calls = append(t.calls, taped{Recorded: rec, number: i + 1, args: decode(redact.JSON(rec.Args, t.redact))})
		p.checkRecorded(field, m.Cassette, i+1, rec, tool)
	}
	return t
}

// ReadCassette reads a cassette in JSON.
func ReadCassette(raw json.RawMessage) (*Cassette, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	c := &Cassette{}
	if err := dec.Decode(c); err != nil {
		return nil, fmt.Errorf("it cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if c.Match != "" && c.Match != matchExact && c.Match != matchSubset {
		return nil, fmt.Errorf("unknown match %q: expected exact or subset", c.Match)
	}
	for i, rec := range c.Calls {
		if rec.Tool == "" {
			return nil, fmt.Errorf("calls[%d] has no tool", i)
		}
		if len(rec.Args) > 0 && v1.JSONKind(rec.Args) != "object" {
			return nil, fmt.Errorf("calls[%d].args must be an object, got %s", i, v1.JSONKind(rec.Args))
		}
		if len(rec.Args) == 0 {
			c.Calls[i].Args = json.RawMessage("{}")
		}
	}
	return c, nil
}

// checkRecorded warns of a recorded call that no longer fits the tool's schemas.
func (p *player) checkRecorded(field, name string, number int, rec *Recorded, tool *v1.Tool) {
	check := func(what string, schema, doc json.RawMessage) {
		if len(schema) == 0 || len(doc) == 0 {
			return
		}
		violations, err := p.runner.schema(tool, schema).ValidateJSON(doc)
		if err != nil || len(violations) == 0 {
			return // the call itself reports an invalid schema
		}
		p.warn(field, "cassette %q, call %d: the recorded %s no longer fits the schema of %q: %s; record it again", name, number, what, tool.Metadata.Name, violations[0])
	}
	check("arguments", tool.Spec.InputSchema, rec.Args)
	if rec.Error == nil {
		check("result", tool.Spec.OutputSchema, rec.Result)
	}
}

// play answers a call with a recorded call that has the same arguments. If the cassette has no such call, the scenario
// fails regardless of its expectations.
func (t *tape) play(s *slot, tool *v1.Tool, args any) (v1.Result, error) {
	masked := args
	if len(t.redact) > 0 {
		masked = decode(redact.JSON(jsontext.Of(args), t.redact))
	}
	masked = without(masked, t.ignore)
	var found *taped
	nearest, fewest := -1, 0
	for i := range t.calls {
		c := &t.calls[i]
		diff := t.compare(c, masked)
		if len(diff) > 0 {
			if nearest < 0 || len(diff) < fewest {
				nearest, fewest = i, len(diff)
			}
			continue
		}
		found = c
		if !c.played {
			break
		}
	}
	if found == nil {
		return t.miss(s, tool, masked, nearest)
	}
	found.played = true
	s.took += time.Duration(found.DurationMS * float64(time.Millisecond))
	res := v1.Result{Status: v1.StatusComplete, Content: found.Result, Parts: slices.Clone(found.Parts), Attempts: 1}
	if found.Error == nil {
		return res, nil
	}
	res.Status = ""
	if found.Error.Answered {
		res.Status = v1.StatusFailed
	}
	return res, found.Error.err(tool.Metadata.Name)
}

func (t *tape) compare(c *taped, args any) []Difference {
	m := &matcher{exact: !t.subset}
	m.value(without(c.args, t.ignore), args, "$", "")
	return m.found
}

func (t *tape) miss(s *slot, tool *v1.Tool, args any, nearest int) (v1.Result, error) {
	message := fmt.Sprintf("the cassette %q has no call of %q with %s", t.name, tool.Metadata.Name, show(args))
	switch {
	case nearest >= 0:
		c := &t.calls[nearest]
		var why []string
		for _, d := range t.compare(c, args) {
			why = append(why, fmt.Sprintf("%s: recorded %s, got %s", d.Path, d.Expected, d.Got))
		}
		message += fmt.Sprintf("; the nearest is call %d: %s", c.number, strings.Join(why, "; "))
	case len(t.calls) == 0:
		message += "; it has no call of this tool at all"
	}
	s.player.fail(Failure{Tool: tool.Metadata.Name, What: "mock", Message: message, Field: t.field})
	return v1.Result{}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: v1.PhaseExecute, Message: "the cassette has no such call"}
}

// without returns doc without the values at the pointers. doc is not changed.
func without(doc any, pointers []string) any {
	for _, p := range pointers {
		if strings.HasPrefix(p, "/") {
			doc = drop(doc, v1.Tokens(p))
		}
	}
	return doc
}

func drop(doc any, tokens []string) any {
	token := tokens[0]
	switch v := doc.(type) {
	case map[string]any:
		item, ok := v[token]
		if !ok {
			return doc
		}
		out := make(map[string]any, len(v))
		maps.Copy(out, v)
		if len(tokens) == 1 {
			delete(out, token)
		} else {
			out[token] = drop(item, tokens[1:])
		}
		return out
	case []any:
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(v) {
			return doc
		}
		out := slices.Clone(v)
		if len(tokens) == 1 {
			return slices.Delete(out, i, i+1)
		}
		out[i] = drop(v[i], tokens[1:])
		return out
	}
	return doc
}
