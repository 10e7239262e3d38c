// Package diff classifies what a change means for those who rely on the previous version.
//
//	change, err := diff.NewChecker().Schemas(before, after, diff.Input, validate.Draft2020)
//
// A schema is a set of documents. A change is breaking if a document was in the set
// and no longer is: this document, the witness, is the proof. A change is compatible
// if it is proven that there is no such document. See [Class].
//
// [Checker.Manifests] does the same for whole manifests: what changed, field by field, and
// what that means. A policy is tighter or looser, with a call that shows it.
package diff
