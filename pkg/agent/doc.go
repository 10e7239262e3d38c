// Package agent runs a prompt against a model that calls the tools of a registry.
//
//	p, err := prompt.Compile(manifest)
//	...
//	res, err := agent.Run(ctx, reg, p, json.RawMessage(`{"city":"Oslo"}`), agent.Options{Model: model})
//	fmt.Println(res.Text)
//
// Data flows one way: a rendered prompt and the tools that it may use become a [Request]; a [Model] replies; its tool
// calls go through the registry, where every policy and validation applies; their results become messages of the next
// request.
//
// A model is an implementation of [Model]. The packages below this one hold one provider each, so that a program links
// only those it uses.
//
// # What is offered
//
// A run reads the registry again at each hop. It offers the model the tools of spec.tools that are ready and that no
// policy refuses in every case. Both the policies of manifests and the policy of the prompt count; the latter governs
// the run's calls in every namespace. The run refuses calls of all other tools. If spec.tools names a prompt, the run
// offers that prompt too: the variables of the prompt are the arguments, and a call starts a run with the tools and
// policy of that prompt.
//
// With tool_choice none, a run offers no tools. With required, it requires calls from the model until a tool was
// called.
//
// # Calls
//
// The calls of a reply run in parallel, and their results keep the order of the calls. The model sees the error of a
// call that fails, unless the tool has on_error return, which ends the run. The fourth call of the same tool with the
// same arguments is refused. Results of tools with hints.read_only or a cache are used again.
//
// Arguments that are almost JSON are repaired with the smallest change that helps. The model gets a list of violations
// for other arguments. If a reply has no calls, the run takes calls of offered tools from its text, unless the text
// repeats the result of a tool.
//
// # Results
//
// The model sees the result of a tool as untrusted data, between delimiters that the result cannot close. Results are
// cut at Options.MaxResultBytes with a note of how much is shown.
//
// # Answers
//
// If spec.output is set, the answer must fit it. The provider enforces the schema if it can; otherwise the model calls
// a tool submit_output with its answer. After an answer that does not fit, the model may try once more.
//
// # Waiting
//
// A call that needs approval suspends the run. [Options].States stores the run, and [Resume] continues it, even in
// another process.
package agent
