// Package source reads manifests from where they are kept.
//
//	set, err := source.LoadGit(ctx, source.Git{Rev: "main", Paths: []string{"tools"}}, manifest.Options{})
//
// [LoadGit] reads the files of one revision from a repository on this machine. Nothing is
// fetched, the work tree stays as it is, and no program of the repository is run: neither
// hooks nor filters.
package source
