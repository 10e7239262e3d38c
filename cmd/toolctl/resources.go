package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/registry"
)

// requests reads the arguments of a command: KIND or KIND,KIND, each optionally followed by names; "all"; or any
// number of KIND/NAME.
func requests(args []string) ([]action.Request, error) {
	if len(args) == 0 {
		return nil, nil
	}
	if !strings.Contains(args[0], "/") {
		return requestsOf(args[0], args[1:])
	}
	var rs []action.Request
	for _, arg := range args {
		word, name, slash := strings.Cut(arg, "/")
		switch {
		case !slash:
			return nil, usagef("%q: expected KIND/NAME, as in %q", arg, args[0])
		case name == "":
			return nil, usagef("%q: a name is missing after the slash", arg)
		}
		kind, err := parseKind(word)
		if err != nil {
			return nil, err
		}
		rs = add(rs, kind, name)
	}
	return rs, nil
}

// requestsOf reads a word that names kinds, and the names that follow it.
func requestsOf(words string, args []string) ([]action.Request, error) {
	var rs []action.Request
	if words == "all" {
		for _, kind := range v1.Kinds() {
			rs = append(rs, action.Request{Kind: kind})
		}
	} else {
		for word := range strings.SplitSeq(words, ",") {
			kind, err := parseKind(word)
			if err != nil {
				return nil, err
			}
			rs = add(rs, kind)
		}
	}
	for _, arg := range args {
		// A kind before the slash makes it a KIND/NAME; anything else is a namespace.
		if word, _, slash := strings.Cut(arg, "/"); slash && isKind(word) {
			return nil, usagef("%q and %q: name the kind once, or write KIND/NAME for each", words, arg)
		}
		for i := range rs {
			rs[i].Names = append(rs[i].Names, arg)
		}
	}
	return rs, nil
}

// add adds names to the request for a kind.
func add(rs []action.Request, kind string, names ...string) []action.Request {
	for i := range rs {
		if rs[i].Kind == kind {
			rs[i].Names = append(rs[i].Names, names...)
			return rs
		}
	}
	return append(rs, action.Request{Kind: kind, Names: names})
}

// hasNames reports whether a request names an object.
func hasNames(rs []action.Request) bool {
	return slices.ContainsFunc(rs, func(r action.Request) bool { return len(r.Names) > 0 })
}

// named reports whether every request names its objects.
func named(rs []action.Request) bool {
	return len(rs) > 0 && !slices.ContainsFunc(rs, func(r action.Request) bool { return len(r.Names) == 0 })
}

// resource reads the arguments of commands that accept one kind.
func resource(args []string) (kind string, names []string, err error) {
	rs, err := requests(args)
	switch {
	case err != nil || len(rs) == 0:
		return "", nil, err
	case len(rs) > 1:
		return "", nil, usagef("one kind at a time: %s and %s", strings.ToLower(rs[0].Kind), strings.ToLower(rs[1].Kind))
	}
	return rs[0].Kind, rs[0].Names, nil
}

// meant adds to the error about an unknown kind which objects have that word as their name.
func (a *app) meant(cmd *cobra.Command, err error) error {
	var unknown unknownKind
	if !errors.As(err, &unknown) || unknown.word == "" || slices.Contains(a.conf.Files, "-") {
		return err
	}
	var found []string
	for _, it := range a.items(cmd, registry.Query{Namespace: a.conf.Namespace, Name: unknown.word}) {
		if n := objectName(it.Object.Head().Key()); !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	server, _, ofServer := strings.Cut(strings.TrimPrefix(unknown.word, v1.MCPPrefix), "__")
	switch {
	case len(found) > 0:
	case ofServer && len(a.items(cmd, registry.Query{Kind: v1.KindMCPServer, Namespace: a.conf.Namespace, Name: server})) > 0:
		return usagef("%q is not a kind, but the name of a tool of mcpserver/%s: did you mean '%s tool/%s%s'?", unknown.word, server, calledPath(cmd), unknown.word, sourceFlags(cmd))
	default:
		return err
	}
	return usagef("%q is not a kind, but the name of %s: did you mean '%s %s%s'?", unknown.word, strings.Join(found, " and "), calledPath(cmd), found[0], sourceFlags(cmd))
}

// calledPath returns the path of a command with the alias that was used.
func calledPath(cmd *cobra.Command) string {
	path := cmd.CommandPath()
	if as := cmd.CalledAs(); as != "" {
		path = strings.TrimSuffix(path, cmd.Name()) + as
	}
	return path
}

// sourceFlags returns the flags of a command line that select its manifests, as they were given.
func sourceFlags(cmd *cobra.Command) string {
	line := ""
	for _, name := range []string{"filename", "kustomize", "store", "namespace"} {
		f := cmd.Flag(name)
		if f == nil || !f.Changed {
			continue
		}
		flag := " --" + name + " "
		if f.Shorthand != "" {
			flag = " -" + f.Shorthand + " "
		}
		values := []string{f.Value.String()}
		if several, ok := f.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		for _, v := range values {
			line += flag + shellWord(v)
		}
	}
	return line
}

func isKind(s string) bool { _, ok := v1.ParseKind(s); return ok }

// parseKind reads a kind as people write it: any case, singular, plural or short.
func parseKind(s string) (string, error) {
	if kind, ok := v1.ParseKind(s); ok {
		return kind, nil
	}
	var words, all []string
	for _, k := range v1.KindInfos() {
		words, all = append(words, k.Name), append(append(all, k.Name, k.Singular()), k.Short...)
	}
	return "", usageError{unknownKind{s, fmt.Sprintf("unknown kind %q: expected one of %s%s", s, strings.Join(words, ", "), v1.DidYouMean(strings.ToLower(s), all))}}
}

// unknownKind reports a word that is not a kind but may be a name.
type unknownKind struct{ word, text string }

func (e unknownKind) Error() string { return e.text }
