// Package scenario plays Scenario manifests: turns of calls against mocks. It compares each result with the
// expectation and reports the differences.
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
// A call gets its result from the scenario's spec.mocks, or from the mock that the tool itself declares, regardless of
// the mode of the tool. A call of a tool without a mock fails the scenario; the real tool is never called. With
// Options.Live there are no mocks, and a registry with real executors makes the calls.
//
// # Isolation
//
// Scenarios run in parallel. Each has its own session, counters, mocks and random source, so scenarios do not affect
// each other. Scenarios that choose the same tools and policies share one compiled registry, which never changes.
//
// # Determinism
//
// The same manifests and seed give the same report, byte for byte, at any parallelism. For policies the calls of a
// turn are one turn. They are played in order, so that it is certain which call gets the first response of a mock.
// Time is virtual: a latency fault adds to the duration of its call without waiting, and a timeout ends the call at
// the tool's deadline at once. Policies see one fixed time. With Options.Live the calls of a turn run in parallel,
// time is real, and the results come from upstream.
//
// # Scripted models
//
// A turn with a scripted model runs through the loop of package agent: the prompt is rendered, its tools are offered,
// results go back to the model, and a run that waits for approval is saved and resumed. Assertions judge the calls,
// since the model sees a refused or failed call and continues. The turn's expect judges the whole run, and sees of a
// reply judges the request to the model. The calls are made one after the other, except with Options.Live.
//
// # PromptKit
//
// PromptKit scenarios are played without the loop, as far as they concern tools: turns with replies from a file of
// mock responses ([ReadResponses]), and assertions about tool calls and text. A warning names each other part.
package scenario
