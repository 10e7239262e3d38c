package action

import (
	"context"
	"os"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/source/oci"
)

// Pull names the repository from which manifests are pulled at every interval.
type Pull struct {
	// Address is a Git repository or an OCI image, in the form of [source.ParseAddress].
	Address string
	// Interval is the time between two checks for a new revision, of at least one second.
	Interval time.Duration
	// RequireSigned is a file of keys. Only revisions that one of these keys signed are used. Default: all revisions are
	// used.
	RequireSigned string
	// AllowRollback accepts commits that do not descend from the previous one.
	AllowRollback bool
}

// Check parses the address and checks the options. Files must be empty, since a source replaces them.
func (p *Pull) Check(files []string) (at source.Address, err error) {
	const shortest = time.Second
	switch {
	case p.Address == "":
		return at, usagef("name the repository with --source, such as git+https://git.example.com/team/tools//prod?ref=main")
	case len(files) > 0:
		return at, usagef("--source and -f cannot be used together: name one place where the manifests are")
	case p.Interval < shortest:
		return at, usagef("--interval %s: expected %s or more", p.Interval, shortest)
	}
	if at, err = source.ParseAddress(p.Address); err != nil {
		return at, usagef("--source: %w", err)
	}
	return at, nil
}

// open opens the source. Its manifests are checked together with the objects that beside returns; o has the other
// options of the source.
func (p *Pull) open(c *Config, beside func(context.Context) ([]v1.Object, error), o source.RemoteOptions) (*pulled, error) {
	at, err := p.Check(c.Files)
	if err != nil {
		return nil, err
	}
	var origin source.Origin
	if at.IsGit() {
		if origin, err = source.NewRepository(at, source.RepositoryOptions{Environ: os.Environ(), RequireSigned: p.RequireSigned}); err != nil {
			return nil, usagef("--require-signed: %w", err)
		}
	} else {
		repository, err := oci.Open(at, oci.Options{Env: c.env})
		if err != nil {
			return nil, usagef("--source: %w", err)
		}
		if origin, err = oci.NewOrigin(repository, p.RequireSigned); err != nil {
			return nil, usagef("--source, --require-signed: %w", err)
		}
	}
	o.Interval, o.AllowRollback = p.Interval, p.AllowRollback
	o.Check = func(ctx context.Context, set *manifest.Set) ([]v1.Violation, error) {
		objects, err := beside(ctx)
		if err != nil {
			return nil, err
		}
		check, err := c.Checking(Reading{Beside: objects})
		if err != nil {
			return nil, err
		}
		return check.Set(ctx, set)
	}
	return &pulled{source.NewRemote(origin, o)}, nil
}

// pulled is a source whose errors distinguish a bad revision from an unreachable repository.
type pulled struct{ *source.Remote }

func (p *pulled) Load(ctx context.Context) (*manifest.Set, error) {
	set, err := p.Remote.Load(ctx)
	return set, SourceError(err)
}
