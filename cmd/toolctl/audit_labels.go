package main

import (
	"context"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// labelledAudit is a store whose audit has the lines alone that are about some objects.
type labelledAudit struct {
	store.Store
	has func(*v1.AuditRecord) bool
}

// withLabels chooses by -l among the lines of the audit: those about objects that have the
// labels now. What is no longer in the store has none.
func (a *app) withLabels(ctx context.Context, s store.Store) (store.Store, error) {
	if a.selector == "" {
		return s, nil
	}
	about, err := a.labelled(ctx, s)
	if err != nil {
		return nil, err
	}
	return labelledAudit{s, func(r *v1.AuditRecord) bool {
		if r.Change != nil {
			return about(v1.Key{Kind: r.Change.Kind, Namespace: r.Namespace, Name: r.Change.Name})
		}
		return about(v1.Key{Kind: v1.KindTool, Namespace: r.Namespace, Name: r.Tool})
	}}, nil
}

// labelled says which objects of the store have the labels of -l. A tool of an MCP server has
// those of its server.
func (a *app) labelled(ctx context.Context, s store.Store) (func(v1.Key) bool, error) {
	has, err := a.selected()
	if err != nil {
		return nil, err
	}
	objects, err := storedObjects(ctx, s, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	fits := map[v1.Key]bool{}
	for _, o := range objects {
		fits[o.Head().Key()] = has(o)
	}
	return func(key v1.Key) bool {
		if fit, ok := fits[key]; ok {
			return fit
		}
		server, _, ok := strings.Cut(key.Name, "__")
		return ok && key.Kind == v1.KindTool && fits[v1.Key{Kind: v1.KindMCPServer, Namespace: key.Namespace, Name: server}]
	}, nil
}

func (l labelledAudit) EachAudit(ctx context.Context, filter store.AuditFilter, fn func(store.AuditLine) error) error {
	limit := filter.Limit
	filter.Limit = 0
	var newest []store.AuditLine
	err := l.Store.EachAudit(ctx, filter, func(line store.AuditLine) error {
		r, err := line.Record()
		switch {
		case err != nil:
			return err
		case !l.has(&r):
			return nil
		case limit == 0:
			return fn(line)
		case len(newest) == limit:
			newest = append(newest[:0], newest[1:]...)
		}
		newest = append(newest, line)
		return nil
	})
	for _, line := range newest {
		if err == nil {
			err = fn(line)
		}
	}
	return err
}

func (l labelledAudit) FollowAudit(ctx context.Context, filter store.AuditFilter, fn func([]store.AuditLine) error) error {
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
