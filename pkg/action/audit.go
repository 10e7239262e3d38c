package action

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// chosenAudit is a store whose audit log shows only the records for which has is true.
type chosenAudit struct {
	store.Store
	has func(*v1.AuditRecord) bool
}

// Audit opens the audit log of the store.
type Audit struct {
	*Config
	// Filter chooses records. Its Tool may also be an object that was changed, as KIND/NAME or
	// KIND/NAMESPACE/NAME, or a tool as NAMESPACE/NAME; names may have * and ?.
	Filter store.AuditFilter
	// Decision is one of [AuditDecisions]: only calls with this decision of the policies. Default: all records.
	Decision string
	// Selector chooses records about objects that have the labels now. Objects that are no longer in the store have no
	// labels. Default: all records.
	Selector string
}

// Run opens the store for do, which sees only the chosen records if it uses the filter.
func (a *Audit) Run(ctx context.Context, do func(store.Store, store.AuditFilter) error) error {
	return a.withKept(ctx, "the audit is in the store, not in files", func(s store.Store) error {
		f := a.Filter
		if f.Namespace == "" {
			f.Namespace = a.Namespace
		}
		if decided := decisions[a.Decision]; decided != nil {
			s = chosenAudit{s, decided}
		}
		if first, name, _ := strings.Cut(f.Tool, "/"); name != "" && slices.ContainsFunc(v1.Kinds(), func(k string) bool { return strings.EqualFold(k, first) }) {
			if namespace, local, ok := strings.Cut(name, "/"); ok {
				f.Namespace, name = namespace, local
			}
			f.Tool = "" // only records about tools have a tool
			fits := regexp.MustCompile("^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(name)) + "$")
			s = chosenAudit{s, func(r *v1.AuditRecord) bool {
				return r.Change != nil && strings.EqualFold(r.Change.Kind, first) && fits.MatchString(r.Change.Name)
			}}
		} else if name != "" {
			f.Namespace, f.Tool = first, name
		}
		if a.Selector == "" {
			return do(s, f)
		}
		about, err := labeledKeys(ctx, s, a.Selector)
		if err != nil {
			return err
		}
		return do(chosenAudit{s, func(r *v1.AuditRecord) bool {
			if r.Change != nil {
				return about(v1.Key{Kind: r.Change.Kind, Namespace: r.Namespace, Name: r.Change.Name})
			}
			return about(v1.Key{Kind: v1.KindTool, Namespace: r.Namespace, Name: r.Tool})
		}}, f)
	})
}

// AuditDecisions returns the values of Decision of [Audit]. "refused" covers refusals by a policy and by a
// person.
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

// EachAudit reads the newest records backwards, in parts of growing size. Without this, a limit would read the whole
// log.
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
