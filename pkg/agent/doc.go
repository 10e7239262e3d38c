// Package agent runs a prompt against a model that calls the tools of a registry.
//
// Data flows one way: a rendered prompt and the tools that it may use become a
// [Request]; a [Model] replies; its tool calls go through the registry, where every
// policy and validation applies; their results become messages of the next request.
//
// A model is an implementation of [Model]. The packages below this one hold one
// provider each, on its maker's own SDK, so that a program links only those it uses.
package agent
