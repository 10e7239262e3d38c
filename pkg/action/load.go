package action

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/overlay"
	"toolctl.dev/toolctl/pkg/registry"
)

// Reading are the options for reading manifests.
type Reading struct {
	// Paths are files and folders. Default: Files of the [Config].
	Paths []string
	// Beside are objects that the manifests may refer to.
	Beside []v1.Object
	// Places keeps the position of every field, Layout the comments and the order of keys.
	Places, Layout bool
	// AllowEmpty accepts missing files and files without objects.
	AllowEmpty bool
}

// Checking returns the [Check] of manifests.
func (c *Config) Checking(r Reading) (Check, error) {
	if r.Paths == nil {
		r.Paths = c.Files
	}
	if err := c.checkNamespace(); err != nil {
		return Check{}, err
	}
	o, err := c.permitted()
	if err != nil {
		return Check{}, err
	}
	o.Permit = o.Permit.Own()
	locks, err := locksOf(o.LockFile, r.Paths)
	if err != nil {
		return Check{}, err
	}
	told := false // the files may be read twice
	return Check{
		Load: func(ctx context.Context, places bool) (*manifest.Set, error) {
			o := c.manifests()
			o.Fields, o.Layout, o.AllowEmpty = places, r.Layout, r.AllowEmpty
			set, err := manifest.Load(ctx, r.Paths, o)
			if err != nil {
				return nil, &UsageError{err}
			}
			if folders := c.unbuilt(set, r.Paths); len(folders) > 0 && !told && c.Unbuilt != nil {
				c.Unbuilt(folders)
			}
			told = true
			return set, nil
		},
		Places:    r.Places || slices.Contains(r.Paths, "-"), // stdin can be read only once
		Namespace: c.Namespace, Beside: r.Beside, Locks: locks, Options: o,
	}, nil
}

// locksOf returns the lock that a gateway would use and the locks in the folders of paths.
func locksOf(named string, paths []string) ([]string, error) {
	used, err := lock.Find(named)
	if err != nil {
		return nil, err
	}
	all := []string{used}
	for _, p := range paths {
		in := filepath.Join(p, lock.Name)
		if _, err := os.Stat(in); err == nil && !slices.Contains(all, in) {
			all = append(all, in)
		}
	}
	return all, nil
}

// unbuilt returns the folders that were read file by file but have a kustomization.yaml.
func (c *Config) unbuilt(set *manifest.Set, paths []string) []string {
	folders := set.Overlays
	if len(set.Objects) == 0 {
		for _, p := range paths {
			if !slices.Contains(c.Overlays, p) && !slices.Contains(folders, filepath.Clean(p)) && overlay.Is(p) {
				folders = append(folders, p)
			}
		}
	}
	return folders
}

// Load reads and checks manifests. Their errors are one [v1.ValidationError]; warnings are returned.
func (c *Config) Load(ctx context.Context, r Reading) (*manifest.Set, []v1.Violation, error) {
	check, err := c.Checking(r)
	if err != nil {
		return nil, nil, err
	}
	set, violations, err := check.Run(ctx)
	if err != nil {
		return nil, nil, err
	}
	warnings := slices.DeleteFunc(slices.Clone(violations), func(v v1.Violation) bool { return !v.IsWarning() })
	if errs := v1.Errors(violations); len(errs) > 0 {
		return nil, warnings, v1.NewValidationError(v1.ManifestInvalid, "", errs)
	}
	return set, warnings, nil
}

// intoNamespace sets the namespace of the [Config] in objects without a namespace.
func (c *Config) intoNamespace(objects []v1.Object) ([]v1.Violation, error) {
	if err := c.checkNamespace(); err != nil {
		return nil, err
	}
	return intoNamespace(objects, c.Namespace), nil
}

func (c *Config) checkNamespace() error {
	if c.Namespace != "" && (!v1.IsName(c.Namespace) || strings.Contains(c.Namespace, ".")) {
		return usagef("-n %q is not a legal name: expected lower-case letters, digits, '-' and '_'", c.Namespace)
	}
	return nil
}

// Regular refuses pipes, devices and sockets.
func Regular(paths []string) error {
	for _, path := range paths {
		if err := regular.Check(path); err != nil && path != "-" {
			return usagef("%s: %w", path, regular.Reason(err))
		}
	}
	return nil
}

// keyNamed returns the key for NAME or NAMESPACE/NAME. A name alone is in the namespace of the [Config].
func (c *Config) keyNamed(kind, name string) v1.Key {
	k := v1.Key{Kind: kind, Namespace: cmp.Or(c.Namespace, v1.DefaultNamespace), Name: name}
	if namespace, local, ok := strings.Cut(name, "/"); ok {
		k.Namespace, k.Name = namespace, local
	}
	return k
}

// Labeled returns a function that reports whether an object matches a label selector.
func Labeled(selector string) (func(v1.Object) bool, error) {
	s, err := registry.ParseSelector(selector)
	if err != nil {
		return nil, usagef("-l: %w", err)
	}
	return func(o v1.Object) bool { return s.Matches(o.Head().Metadata.Labels) }, nil
}
