// Package diff says what a change means for those who rely on what was there before.
//
//	change, err := diff.NewChecker().Schemas(before, after, diff.Input, validate.Draft2020)
//
// A schema is a set of documents. A change is breaking when a document was in the set
// and is not any more, which the document itself, the witness, proves; it is compatible
// when it is proven that there is no such document. See [Class].
//
// [Checker.Manifests] does the same for whole manifests: what changed, field by field, and
// what that means. A policy is tighter or looser, with a call that shows it.
package diff
