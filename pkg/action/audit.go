package action

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// chosenAudit is a store whose audit has some lines alone.
type chosenAudit struct {
	store.Store
	has func(*v1.AuditRecord) bool
}

// Audit opens the audit log of the store.
type Audit struct {
	*Config
	// Decision is one of [AuditDecisions]: only calls on which the policies decided so. Default: all lines.
	Decision string
	// Kind and Name choose lines about changes of these objects; a name may have * and ?. Default: all lines.
	Kind, Name string
	// Selector chooses lines about objects that have the labels now. What is no longer in the store has
	// none. Default: all lines.
	Selector string
}

// Open returns the store, whose audit log has the chosen lines alone.
func (a *Audit) Open(ctx context.Context) (_ store.Store, err error) {
	if len(a.Files) > 0 {
		return nil, usagef("the audit is in the store, not in files: leave out -f, and name the store with --store where it is not the usual one")
	}
	s, err := a.OpenExisting(ctx)
	if err != nil {
		return nil, err
	}
	if decided := decisions[a.Decision]; decided != nil {
		s = chosenAudit{s, decided}
	}
	if a.Kind != "" {
		fits := regexp.MustCompile("^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(a.Name)) + "$")
		s = chosenAudit{s, func(r *v1.AuditRecord) bool {
			return r.Change != nil && strings.EqualFold(r.Change.Kind, a.Kind) && fits.MatchString(r.Change.Name)
		}}
	}
	if a.Selector == "" {
		return s, nil
	}
	about, err := labeledKeys(ctx, s, a.Selector)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return chosenAudit{s, func(r *v1.AuditRecord) bool {
		if r.Change != nil {
			return about(v1.Key{Kind: r.Change.Kind, Namespace: r.Namespace, Name: r.Change.Name})
		}
		return about(v1.Key{Kind: v1.KindTool, Namespace: r.Namespace, Name: r.Tool})
	}}, nil
}

// AuditDecisions are the values of Decision of [Audit]. "refused" is by a policy or a person.
func AuditDecisions() []string { return slices.Sorted(maps.Keys(decisions)) }

var decisions = map[string]func(*v1.AuditRecord) bool{
	v1.DecisionAllow: decidedAs(v1.DecisionAllow), v1.DecisionDeny: decidedAs(v1.DecisionDeny),
	v1.DecisionAudit: decidedAs(v1.DecisionAudit), v1.DecisionPending: decidedAs(v1.DecisionPending),
	"refused": func(r *v1.AuditRecord) bool {
		return decidedAs(v1.DecisionDeny)(r) || r.ErrorType == v1.TypePolicyRefused || r.Approval != nil && r.Approval.Decision == v1.ApprovalDenied
	},
}

func decidedAs(decision string) func(*v1.AuditRecord) bool {
	return func(r *v1.AuditRecord) bool { return r.Policy != nil && r.Policy.Decision == decision }
}

// EachAudit reads backwards for the newest lines, in parts that grow, so that it need not read all.
func (l chosenAudit) EachAudit(ctx context.Context, filter store.AuditFilter, fn func(store.AuditLine) error) error {
	if filter.Limit == 0 {
		return l.eachChosen(ctx, filter, fn)
	}
	head, err := l.AuditHead(ctx)
	if err != nil {
		return err
	}
	last := head.Lines
	if filter.UpTo > 0 {
		last = min(last, filter.UpTo)
	}
	var newest []store.AuditLine
	limit, oldest := filter.Limit, filter.After
	filter.Limit = 0
	for part := int64(4096); last > oldest && len(newest) < limit; part *= 2 {
		filter.After, filter.UpTo = max(last-part, oldest), last
		var found []store.AuditLine
		if err := l.eachChosen(ctx, filter, func(line store.AuditLine) error {
			if found = append(found, line); len(found) > 2*limit {
				found = append(found[:0], found[len(found)-limit:]...)
			}
			return nil
		}); err != nil {
			return err
		}
		newest, last = append(found, newest...), filter.After
	}
	for _, line := range newest[max(len(newest)-limit, 0):] {
		if err := fn(line); err != nil {
			return err
		}
	}
	return nil
}

func (l chosenAudit) eachChosen(ctx context.Context, filter store.AuditFilter, fn func(store.AuditLine) error) error {
	return l.Store.EachAudit(ctx, filter, func(line store.AuditLine) error {
		r, err := line.Record()
		if err != nil || !l.has(&r) {
			return err
		}
		return fn(line)
	})
}

func (l chosenAudit) FollowAudit(ctx context.Context, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
	if filter.Limit > 0 {
		head, err := l.AuditHead(ctx)
		if err != nil {
			return err
		}
		filter.UpTo = head.Lines
		err = l.EachAudit(ctx, filter, func(line store.AuditLine) error { return fn([]store.AuditLine{line}) })
		if err != nil {
			return err
		}
		filter.UpTo, filter.After, filter.Limit = 0, head.Lines, 0
	}
	return l.Store.FollowAudit(ctx, filter, func(lines []store.AuditLine) error {
		var some []store.AuditLine
		for _, line := range lines {
			r, err := line.Record()
			if err != nil {
				return err
			}
			if l.has(&r) {
				some = append(some, line)
			}
		}
		return fn(some)
	})
}
