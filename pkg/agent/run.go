package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

// Registry is the part of a [registry.Registry] that a run uses.
type Registry interface {
	List(registry.Query) (registry.Page, error)
	Get(kind, namespace, name string) (registry.Item, error)
	ExecuteAll(ctx context.Context, calls []v1.Call) []registry.Outcome
	AdmitPrompt(ctx context.Context, call v1.Call) (policy.Admission, error)
}

// Options say how a prompt is run. Model or ModelFor is required; the rest has defaults.
type Options struct {
	// Model is the model, and ModelName is its name in requests. Default: the choice of
	// ModelFor, and spec.model of the prompt.
	Model     Model
	ModelName string
	// ModelFor chooses the model, and its name, for a prompt that is called as a tool, and for
	// the run itself if Model is nil. It is never called concurrently. Default: the model of
	// the caller.
	ModelFor func(*v1.Prompt) (Model, string, error)

	// MaxHops is the maximum number of rounds of calls before the answer. Default: 5.
	MaxHops int
	// MaxDepth is the maximum nesting depth of prompts that call prompts; 1 allows no such calls. Default: 3.
	MaxDepth int
	// Parallel is the maximum number of calls at once. Default: 4.
	Parallel int
	// Only selects which tools and prompts of spec.tools are offered, also in prompts that the
	// model calls. Default: all.
	Only func(v1.Object) bool
	// MaxTools is the maximum number of tools that the model is offered. The tools with the
	// lowest weight are left out, with a warning in Result.Warnings. Default: 128.
	MaxTools int
	// MaxCalls is the maximum number of calls of the run, including those of prompts that it
	// calls. Default: 100.
	MaxCalls int
	// MaxResultBytes is how many bytes of one result the model sees. Default: 32 KiB.
	MaxResultBytes int
	// MaxTranscriptBytes is the maximum size of all messages together. Default: 4 MiB.
	MaxTranscriptBytes int

	// Session, Turn and Principal are set on every call; see [v1.Call]. Default: a new
	// session, in which the run is one turn.
	Session, Turn, Principal string
	// Attachments hold the images and other parts of results, so that the model can pass them to other tools by
	// reference. Use the same value as in the options of the registry. Default: parts are not kept.
	Attachments *registry.Attachments
	// Memo stores results of tools with a cache; runs may share one. Default: a new one for
	// each run.
	Memo *Memo
	// NoCache makes every call even if its result is known.
	NoCache bool
	// ReturnToolRequests ends the run with the calls that the model asks for instead of making
	// them.
	ReturnToolRequests bool
	// States stores a run that waits for approval. Default: such a run cannot be resumed.
	States States
	// On is called with each event, one at a time. Default: events are dropped.
	On func(Event)
	// Stream asks the model to stream its replies, and On gets the pieces.
	Stream bool
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Bounds that no option changes.
const (
	maxCallsPerReply = 64
	maxReplyBytes    = 1 << 20
	maxSame          = 3 // calls with the same arguments
	maxPartBytes     = 8 << 20
)

func (o Options) filled() (Options, error) {
	if o.Model == nil && o.ModelFor == nil {
		return o, errors.New("agent: Options have neither Model nor ModelFor")
	}
	set := func(n *int, value int) {
		if *n <= 0 {
			*n = value
		}
	}
	set(&o.MaxHops, 5)
	set(&o.MaxDepth, 3)
	set(&o.Parallel, 4)
	set(&o.MaxTools, 128) // every provider accepts this many
	set(&o.MaxCalls, 100)
	set(&o.MaxResultBytes, 32<<10)
	set(&o.MaxTranscriptBytes, 4<<20)
	if o.Memo == nil {
		o.Memo = NewMemo()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// Run renders a prompt with its variables and runs it against the model until the model has
// answered. The result is filled in whether or not there is an error. The error is
//
//   - a [v1.ValidationError] when the variables do not fit,
//   - a [ModelError], or another error of the model,
//   - a [ToolHopsError], an [OutputError] or a [LimitError],
//   - the error of a call whose tool has on_error return,
//   - or the error of ctx.
//
// A run that waits for approval has the status pending and no error.
func Run(ctx context.Context, reg Registry, p *prompt.Prompt, vars json.RawMessage, o Options) (Result, error) {
	l, err := newLoop(reg, p, o)
	if err != nil {
		return Result{}, err
	}
	messages, err := p.Render(ctx, vars)
	if err != nil {
		return l.end(err)
	}
	return l.converse(ctx, messages)
}

// Converse is [Run] for existing messages. It uses only the tools and settings of the prompt.
func Converse(ctx context.Context, reg Registry, p *prompt.Prompt, messages prompt.Messages, o Options) (Result, error) {
	l, err := newLoop(reg, p, o)
	if err != nil {
		return Result{}, err
	}
	return l.converse(ctx, messages)
}

// Plan returns the first request that [Run] would send, without sending it.
func Plan(ctx context.Context, reg Registry, p *prompt.Prompt, vars json.RawMessage, o Options) (Request, error) {
	l, err := newLoop(reg, p, o)
	if err != nil {
		return Request{}, err
	}
	messages, err := p.Render(ctx, vars)
	if err != nil {
		return Request{}, err
	}
	l.begin(messages)
	offer, err := l.offer()
	if err != nil {
		return Request{}, err
	}
	return l.request(offer), nil
}

// choose sets the model of the outermost prompt.
func (o *Options) choose(p *prompt.Prompt) (err error) {
	if o.Model == nil {
		var name string
		o.Model, name, err = o.ModelFor(p.Object())
		o.ModelName = cmp.Or(o.ModelName, name)
	}
	return err
}

// newID returns a new ID of a run: 26 letters and digits.
func newID() string { return rand.Text() }
