// Package registry is the heart of toolctl: the compiled set of manifests, and
// the pipeline that every call goes through.
//
//	reg, err := registry.New(objects, registry.Options{Executors: executors.All(executors.Options{})})
//	...
//	defer reg.Close()
//	res, err := reg.Execute(ctx, v1.Call{Tool: "get-weather", Args: []byte(`{"location":"Oslo"}`)})
//
// # One call
//
// [Registry.Execute] looks the tool up, coerces and validates the arguments,
// evaluates the policies, runs the executor within its timeout, validates the result,
// masks secrets and writes the audit record, in this order.
//
// # Snapshots
//
// A [Registry] holds an immutable snapshot of all objects. [Registry.Register],
// [Registry.Unregister] and [Registry.Replace] build the next one and swap it, so
// a call takes no lock and sees a consistent set.
//
// # Broken manifests
//
// A tool whose manifest is broken is listed as not ready, with the reason, and
// does not affect other tools. A policy whose manifest is broken might have
// refused calls, so the tools of its namespace are not ready until it is fixed.
package registry
