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

// Registry is what a run asks of a [registry.Registry].
type Registry interface {
	List(registry.Query) (registry.Page, error)
	Get(kind, namespace, name string) (registry.Item, error)
	ExecuteAll(ctx context.Context, calls []v1.Call) []registry.Outcome
	AdmitPrompt(ctx context.Context, call v1.Call) (policy.Admission, error)
}

// Options say how a prompt is run. Model or ModelFor is required; the rest has defaults.
type Options struct {
	// Model answers, and ModelName is what requests call it. Default: what ModelFor
	// chooses, and spec.model of the prompt.
	Model     Model
	ModelName string
	// ModelFor chooses the model of a prompt that is called as a tool, and its name, and
	// that of the run itself when Model is nil. It is called by one at a time. Default: the
	// model of the caller.
	ModelFor func(*v1.Prompt) (Model, string, error)

	// MaxHops is the most rounds of calls; after the last of them the model is asked for
	// its answer. Default: 5.
	MaxHops int
	// MaxDepth is how deep prompts may call prompts; with 1 none may. Default: 3.
	MaxDepth int
	// Parallel is the maximum number of calls at once. Default: 4.
	Parallel int
	// Only says which of the tools and prompts that the prompt names are offered, and so it is
	// for the prompts that it calls. Default: all.
	Only func(v1.Object) bool
	// MaxTools is the most tools that the model is offered; the lightest are left out, and
	// Result.Warnings says so. Default: 128.
	MaxTools int
	// MaxCalls is the most calls of the run, those of prompts that it calls included.
	// Default: 100.
	MaxCalls int
	// MaxResultBytes is how much of one result the model is shown. Default: 32 KiB.
	MaxResultBytes int
	// MaxTranscriptBytes bounds all messages together. Default: 4 MiB.
	MaxTranscriptBytes int

	// Session, Turn and Principal are those of every call; see [v1.Call]. Default: a
	// session of the run's own, and the run as one turn of it.
	Session, Turn, Principal string
	// Attachments hold the images and other parts of results, so that the model can hand
	// them to other tools by reference; they are those of the registry's options. Default:
	// they are not held.
	Attachments *registry.Attachments
	// Memo remembers results of tools with a cache; runs may share one. Default: one of
	// the run's own.
	Memo *Memo
	// NoCache makes every call, be its result known.
	NoCache bool
	// ReturnToolRequests ends the run with what the model asks for instead of calling it.
	ReturnToolRequests bool
	// States keeps a run that waits for approval. Default: such a run cannot be resumed.
	States States
	// On is told what happens, one event at a time. Default: nobody is.
	On func(Event)
	// Stream asks the model for the pieces of its replies, which On is told of.
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
	set(&o.MaxTools, 128) // as many as every provider takes
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

// Run renders a prompt with its variables and plays it against the model until it has
// an answer. The Run is filled whether or not it ended well. The error is
//
//   - a [v1.ValidationError] when the variables do not fit,
//   - a [ModelError], or what else the model returned,
//   - a [ToolHopsError], an [OutputError] or a [LimitError],
//   - that of a call whose tool has on_error return,
//   - or that of ctx.
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

// Converse is [Run] for messages that were rendered already, or that no prompt
// renders: p then says which tools may be called, and how.
func Converse(ctx context.Context, reg Registry, p *prompt.Prompt, messages prompt.Messages, o Options) (Result, error) {
	l, err := newLoop(reg, p, o)
	if err != nil {
		return Result{}, err
	}
	return l.converse(ctx, messages)
}

// Plan returns the first request that [Run] would send. It asks nobody.
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

// choose fills in the model of the outermost prompt.
func (o *Options) choose(p *prompt.Prompt) (err error) {
	if o.Model == nil {
		var name string
		o.Model, name, err = o.ModelFor(p.Object())
		o.ModelName = cmp.Or(o.ModelName, name)
	}
	return err
}

// newID names a run: 26 letters and digits.
func newID() string { return rand.Text() }
