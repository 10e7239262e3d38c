// Package source reads manifests from where they are kept.
//
//	set, err := source.LoadGit(ctx, source.Git{Rev: "main", Paths: []string{"tools"}}, manifest.Options{})
//
// [LoadGit] reads the files of one revision from a repository on this machine. Nothing is
// fetched, the work tree stays as it is, and no program of the repository is run: neither
// hooks nor filters.
//
//	address, err := source.ParseAddress("git+https://git.example.com/team/tools//prod?ref=main")
//	repository, err := source.NewRepository(address, source.RepositoryOptions{})
//	remote := source.NewRemote(repository, source.RemoteOptions{})
//	g, err := gateway.Open(ctx, gateway.Options{Source: remote, Watch: true})
//
// A [Remote] pulls manifests from elsewhere and judges every revision before it hands it out: one
// with a violation is an error, and whoever asked goes on with what they have.
package source
