package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/registry"
)

// SecretKeys returns the names of members that every recording masks, in addition to the rules
// in spec.redact of the tools.
func SecretKeys() []string {
	return []string{"access_token", "api_key", "apiKey", "apikey", "authorization", "Authorization", "client_secret", "cookie", "password", "private_key", "refresh_token", "secret", "token"}
}

// Recorder records the calls of executors and their results. It is safe for concurrent use.
type Recorder struct {
	redact []string

	mu      sync.Mutex
	calls   []Recorded
	dropped int
}

// maxRecorded is the maximum number of recorded calls, because people read cassettes.
const maxRecorded = 10_000

// NewRecorder returns an empty recorder. It masks by the rules, by [SecretKeys] and by the rules
// of the tools.
func NewRecorder(rules []string) *Recorder {
	return &Recorder{redact: slices.Concat(SecretKeys(), rules)}
}

// Wrap returns executors that record the calls of the given ones.
func (r *Recorder) Wrap(executors []registry.Executor) []registry.Executor {
	out := make([]registry.Executor, len(executors))
	for i, e := range executors {
		out[i] = &recording{Executor: e, recorder: r}
	}
	return out
}

// Cassette returns the recorded calls, sorted by tool and arguments. Equal calls keep their
// order.
func (r *Recorder) Cassette() *Cassette {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Cassette{Match: matchExact, Redacted: r.redact, Calls: slices.Clone(r.calls)}
	c.sort()
	return c
}

type recording struct {
	registry.Executor
	recorder *Recorder
}

// Execute makes and records a call. Only the recording is masked.
func (e *recording) Execute(ctx context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error) {
	began := time.Now()
	res, err := e.Executor.Execute(ctx, tool, args)
	e.recorder.add(tool, args, res, err, time.Since(began))
	return res, err
}

func (r *Recorder) add(tool *v1.Tool, args json.RawMessage, res v1.Result, err error, took time.Duration) {
	rules := slices.Concat(r.redact, tool.RedactRules())
	masks := redact.New(rules, redact.Covered(args, tool.RedactRules())...)
	err = masks.Result(&res, err)
	rec := Recorded{
		Tool: tool.Namespace() + "/" + tool.Metadata.Name, Args: redact.JSON(args, rules),
		DurationMS: math.Round(float64(took)/float64(time.Millisecond)*10) / 10,
	}
	if len(res.Content) > 0 {
		rec.Result = res.Content
	}
	rec.Parts = res.Parts
	if err != nil {
		rec.Error = recordError(err, res)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) == maxRecorded {
		r.dropped++
		return
	}
	r.calls = append(r.calls, rec)
}

// Dropped returns how many calls came after the first 10,000, which were not recorded.
func (r *Recorder) Dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

func recordError(err error, res v1.Result) *RecordedError {
	out := &RecordedError{Type: v1.NewResultError(err).Type, Message: err.Error(), Answered: res.Status == v1.StatusFailed}
	var exec *v1.ExecutionError
	var mcp *v1.MCPError
	switch {
	case errors.As(err, &exec):
		out.Message = exec.Message
	case errors.As(err, &mcp):
		out.Message, out.Server, out.Code = mcp.Message, mcp.Server, mcp.Code
	}
	return out
}

// Check returns the violations that the recorded executor finds, if it has this method.
func (e *recording) Check(tool *v1.Tool) []v1.Violation {
	if c, ok := e.Executor.(registry.Checker); ok {
		return c.Check(tool)
	}
	return nil
}

// Extension returns the extension of the recorded executor.
func (e *recording) Extension() v1.Extension {
	if x, ok := e.Executor.(registry.Extender); ok {
		return x.Extension()
	}
	return v1.Extension{}
}

// Plan returns the plan of the recorded executor.
func (e *recording) Plan(ctx context.Context, tool *v1.Tool, args json.RawMessage) (any, error) {
	if p, ok := e.Executor.(registry.Planner); ok {
		return p.Plan(ctx, tool, args)
	}
	return nil, nil
}

// Close closes the recorded executor.
func (e *recording) Close() error {
	if c, ok := e.Executor.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Add adds the calls of an older cassette to those of c. The match mode of the older cassette applies, and the rules
// and ignored arguments of both are joined.
func (c *Cassette) Add(old *Cassette) {
	c.Match = cmp.Or(old.Match, c.Match)
	c.Ignore = union(old.Ignore, c.Ignore)
	c.Redacted = union(old.Redacted, c.Redacted)
	c.Calls = slices.Concat(old.Calls, c.Calls)
	c.sort()
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (c *Cassette) sort() {
	slices.SortStableFunc(c.Calls, func(a, b Recorded) int {
		return cmp.Or(strings.Compare(a.Tool, b.Tool), strings.Compare(string(jsontext.Of(decode(a.Args))), string(jsontext.Of(decode(b.Args)))))
	})
}
