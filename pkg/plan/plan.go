// Package plan lists the changes that an apply of manifests would make in a store. Later it makes exactly those
// changes, or no change if a manifest or an object has changed in the meantime.
//
//	changes, err := st.Apply(ctx, objects, opts) // with opts.DryRun
//	report, err := plan.Compare(ctx, st, objects, changes)
//	p, err := plan.New(report, changes)
//	...
//	changes, err := p.Apply(ctx, st, objects, store.ApplyOptions{})
//
// A plan has the digest of each object before and after the change. It contains no manifests, so it contains no
// secrets from manifests.
package plan

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/store"
)

// Version is the version of the format of a [Plan].
const Version = 1

// Plan is the list of changes that an apply will make.
type Plan struct {
	Version int       `json:"plan"`
	Created time.Time `json:"created"`
	// Files, Namespace and Selector select the manifests of the plan. Overlays are the Files that toolctl builds.
	Files     []string `json:"files"`
	Overlays  []string `json:"overlays,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
	Selector  string   `json:"selector,omitempty"`
	// Set is the set of the apply. Named reports that --set gave its name, rather than the paths.
	Set   string `json:"set"`
	Named bool   `json:"set_named,omitempty"`
	// TakeOver and Prune are the options of the apply.
	TakeOver bool `json:"take_over,omitempty"`
	Prune    bool `json:"prune,omitempty"`
	// Steps are the changed objects.
	Steps []Step `json:"steps"`
	// Report describes the changes for people.
	diff.Report
}

// Step is the change of one object.
type Step struct {
	Action    store.Action `json:"action"`
	Kind      string       `json:"kind"`
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	// ResourceVersion and Was are the version and the digest in the store; absent if the store does not have
	// the object.
	ResourceVersion int64  `json:"resource_version,omitempty"`
	Was             string `json:"was,omitempty"`
	// Set is the set that the object belonged to.
	Set string `json:"set,omitempty"`
	// Becomes is the digest of the manifest; absent if the object is pruned.
	Becomes string `json:"becomes,omitempty"`
}

func (s *Step) key() v1.Key { return v1.Key{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name} }

// Lister is the part of a store that lists its objects. A caller that has already listed them may pass that
// list.
type Lister interface {
	List(ctx context.Context, opts store.ListOptions) (store.List, error)
}

// Compare classifies the changes of a dry run in the context of the tools and policies of the store and of the
// objects.
func Compare(ctx context.Context, st Lister, objects []v1.Object, changes []store.Change) (*diff.Report, error) {
	list, err := st.List(ctx, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	around := append([]v1.Object{}, objects...)
	given := make(map[v1.Key]bool, len(objects))
	for _, o := range objects {
		given[o.Head().Key()] = true
	}
	for _, r := range list.Records {
		if !given[r.Key()] {
			around = append(around, r.Object)
		}
	}
	pairs := make([]diff.Pair, 0, len(changes))
	unchanged := 0
	for _, c := range changes {
		if c.Action == store.Unchanged && c.TakenFrom == "" {
			unchanged++
			continue
		}
		pair := diff.Pair{TakenFrom: c.TakenFrom}
		if c.Before != nil {
			pair.Before = c.Before.Object
		}
		if c.After != nil {
			pair.After = c.After.Object
		}
		pairs = append(pairs, pair)
	}
	r, err := diff.NewChecker().Manifests(ctx, pairs, around)
	if err == nil {
		r.Summary.Unchanged += unchanged
	}
	return r, err
}

// Overridden adds the overrides of the store to a report, for objects whose served text they replace.
func Overridden(ctx context.Context, st store.Overrides, objects []v1.Object, report *diff.Report) error {
	all, err := st.Overrides(ctx)
	if err != nil {
		return err
	}
	for _, o := range objects {
		var why []string
		served := ""
		for _, by := range all {
			if by.Drifts(o) {
				why, served = append(why, by.Drift()), by.Description
			}
		}
		if len(why) > 0 {
			report.Override(o, served, why...)
		}
	}
	return nil
}

// Left returns the objects of the store that belong to a set but are no longer among its objects.
func Left(ctx context.Context, st Lister, set string, objects []v1.Object) ([]v1.Key, error) {
	list, err := st.List(ctx, store.ListOptions{Set: set})
	if err != nil {
		return nil, err
	}
	given := make(map[v1.Key]bool, len(objects))
	for _, o := range objects {
		given[o.Head().Key()] = true
	}
	var left []v1.Key
	for _, r := range list.Records {
		if r.Set == set && !given[r.Key()] {
			left = append(left, r.Key())
		}
	}
	return left, nil
}

// New returns a plan of the changes of a dry run. The caller fills in the files and the selection.
func New(report *diff.Report, changes []store.Change) (*Plan, error) {
	p := &Plan{Version: Version, Created: time.Now().UTC().Truncate(time.Second), Steps: []Step{}, Report: *report}
	for _, c := range changes {
		set := func(r *store.Record) string {
			if r == nil {
				return ""
			}
			return r.Set
		}
		if c.Action == store.Unchanged && set(c.Before) == set(c.After) {
			continue
		}
		s := Step{Action: c.Action, Kind: c.Key.Kind, Namespace: c.Key.Namespace, Name: c.Key.Name, Set: set(c.Before)}
		var err error
		if c.Before != nil {
			s.ResourceVersion = c.Before.ResourceVersion
			if s.Was, err = Digest(c.Before.Object); err != nil {
				return nil, err
			}
		}
		if c.After != nil {
			if s.Becomes, err = Digest(c.After.Object); err != nil {
				return nil, err
			}
		}
		p.Steps = append(p.Steps, s)
	}
	return p, nil
}

// PruneAnnotation keeps an object in its set and in the store if its value is "disabled".
const PruneAnnotation = "toolctl.dev/prune"

// KeepsObject reports whether an object has the annotation that prevents pruning.
func KeepsObject(r store.Record) bool {
	return r.Object.Head().Metadata.Annotations[PruneAnnotation] == "disabled"
}

// maxPlan limits a plan, in bytes.
const maxPlan = 256 << 20

// Read reads a plan.
func Read(in io.Reader) (*Plan, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxPlan+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxPlan {
		return nil, fmt.Errorf("larger than %d bytes", maxPlan)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	p := &Plan{}
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("expected a plan of 'toolctl diff -o plan': %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("expected a plan of 'toolctl diff -o plan': unexpected data after the plan")
	}
	if p.Version != Version {
		return nil, fmt.Errorf("the plan has version %d: expected %d, from 'toolctl diff -o plan'", p.Version, Version)
	}
	return p, nil
}

// Digest returns the digest of an object. The digest does not depend on the place of the manifest, its comments and
// the order of its keys.
func Digest(o v1.Object) (string, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		return "", err
	}
	h := o.Head()
	text, err := jsontext.Marshal(map[string]any{ // Marshal sorts the keys
		"apiVersion": h.APIVersion, "kind": h.Kind, "namespace": h.Namespace(), "name": h.Metadata.Name,
		"labels": noEmpty(h.Metadata.Labels), "annotations": noEmpty(h.Metadata.Annotations), "spec": doc["spec"], "files": h.Files,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func noEmpty(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}
