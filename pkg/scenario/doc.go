// Package scenario plays Scenario manifests: turns of calls against mocks, with
// what is expected of each, and says what differs.
//
//	runner, err := scenario.New(objects, scenario.Options{Mock: mock, ToJSON: manifest.ToJSON})
//	...
//	report := runner.Run(ctx, scenarios)
//	for _, s := range report.Scenarios {
//		fmt.Println(s.Name, s.Status)
//	}
//
// # No network
//
// A call is answered by the scenario's spec.mocks, else by what the tool itself
// declares to be its mock, whatever its mode is. A tool without either fails the
// scenario; it is never called. With Options.Live there are no mocks, and a
// registry with real executors carries out the calls.
//
// # Isolation
//
// Scenarios run in parallel. Each is a session of its own, with counters, mocks
// and a random source of its own, so none sees another. Scenarios that choose
// the same tools and policies share one compiled registry, which never changes.
//
// # Determinism
//
// The same manifests and seed give the same report, byte for byte, at any
// parallelism. The calls of a turn are one turn to the policies and are played in
// their order, since which of two calls gets the first of a mock's responses must
// not depend on luck. Time is virtual: a fault of latency adds to the duration of
// its call and nobody waits, and a timeout ends the call at the tool's deadline at
// once. Policies see one fixed instant. With Options.Live the calls of a turn run
// at once, time is real, and what comes back is the upstream's.
//
// # Scripted models
//
// A turn with a scripted model runs through the loop of package agent: its prompt is
// rendered, its tools are offered, results go back to the model, and a run that waits
// for approval is kept and resumed. Calls are judged by assertions: a model is told of a
// refused or failed call and goes on. The whole run is judged by the turn's expect, and
// what the model is shown by sees of its replies. Its calls are made one after the other,
// unless with Options.Live.
//
// # PromptKit
//
// Scenarios of PromptKit are played as far as they touch tools, call by call and without
// the loop: turns whose model is scripted by a file of mock responses ([ReadResponses]),
// and the assertions about tool calls and text. Each other part is named in a warning.
package scenario
