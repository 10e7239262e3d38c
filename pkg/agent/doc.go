// Package agent runs a prompt against a model that calls the tools of a registry.
//
//	p, err := prompt.Compile(manifest)
//	...
//	res, err := agent.Run(ctx, reg, p, json.RawMessage(`{"city":"Oslo"}`), agent.Options{Model: model})
//	fmt.Println(res.Text)
//
// Data flows one way: a rendered prompt and the tools that it may use become a
// [Request]; a [Model] replies; its tool calls go through the registry, where every
// policy and validation applies; their results become messages of the next request.
//
// A model is an implementation of [Model]. The packages below this one hold one
// provider each, so that a program links only those it uses.
//
// # What is offered
//
// At each hop the registry is read anew. The model is offered the tools that
// spec.tools names, that are ready, and that no policy refuses in every case: the
// policies of manifests and the prompt's own, which governs the calls of its runs in
// every namespace. A call of anything else is refused, whoever has such a tool. A
// prompt that spec.tools names by its name is offered too: its variables are the
// arguments, and its run is one of its own, with its own tools and policy.
//
// tool_choice none offers nothing; required is asked of the model until a tool was called.
//
// # Calls
//
// The calls of a reply run side by side; their results stand in the order of the calls.
// A call that fails is told to the model, or ends the run when its tool has on_error
// return. The fourth call with the same tool and arguments is not made. Results of
// tools with hints.read_only or a cache are used again.
//
// Arguments that are not quite JSON are repaired, the least change first; what cannot be
// repaired goes back as a list of violations. When a reply has no calls, those that stand in
// its text are taken, if they are of offered tools and do not repeat what a tool said.
//
// # Results
//
// What a tool said is marked as data from outside, between delimiters that it cannot
// close, and cut at Options.MaxResultBytes with a note of how much is shown.
//
// # Answers
//
// Where spec.output is set, the answer is held to it: by the provider where that can,
// else by a tool submit_output that takes the answer. One that does not fit is told
// once what is wrong.
//
// # Waiting
//
// A call that needs approval suspends the run. [Options].States keeps it, [Resume] goes
// on with it, in another process too.
package agent
