package main

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
)

// asUser returns the address of a store for another user.
func asUser(t *testing.T, dsn, user string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("user", user)
	u.RawQuery = q.Encode()
	return u.String()
}

// TestPostgresRoles checks that users without the right to create tables, or with only read access, can use what their
// rights allow, and that the error names a missing right.
func TestPostgresRoles(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	server, _ := startDatabase() // newDatabase has started it
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	schema := address.Query().Get("search_path")
	must := func(q string) {
		t.Helper()
		if err := server.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	writeFile(t, dir+"/tool.yaml", `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, input_schema: {type: object}, mock_result: {paid: true}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {limits: [{tools: [pay], max_calls: 5, per: session}]}
`)
	try := func(user string, args ...string) (code int, text string) {
		t.Helper()
		var out, errs bytes.Buffer
		code = run(t.Context(), append(args, "--store", asUser(t, dsn, user)), strings.NewReader(""), &out, &errs)
		return code, out.String() + errs.String()
	}
	works := func(user string, args ...string) {
		t.Helper()
		if code, text := try(user, args...); code != exitOK {
			t.Errorf("%s: toolctl %s: exit %d: %s", user, strings.Join(args, " "), code, text)
		}
	}
	refused := func(user string, code int, says []string, args ...string) {
		t.Helper()
		got, text := try(user, args...)
		t.Logf("%s: toolctl %s: %s", user, strings.Join(args, " "), text)
		if got != code || strings.Count(text, "error:") > 1 {
			t.Errorf("exit %d, want %d and one error", got, code)
		}
		for _, s := range says {
			if !strings.Contains(text, s) {
				t.Errorf("it does not say %q", s)
			}
		}
	}
	for _, role := range []string{"owner", "writer", "reader", "nobody"} {
		must("DROP ROLE IF EXISTS " + role)
		must("CREATE ROLE " + role + " LOGIN")
	}
	must("GRANT USAGE, CREATE ON SCHEMA " + schema + " TO owner")
	must("GRANT USAGE ON SCHEMA " + schema + " TO writer, reader")

	refused("writer", exitFailed, []string{"writer", "CREATE", schema, "store migrate"}, "store", "migrate")
	works("owner", "store", "migrate")
	refused("writer", exitFailed, []string{"SELECT", "toolctl_migrations", "writer", "GRANT"}, "list")
	refused("nobody", exitFailed, []string{"USAGE", schema, "nobody"}, "list")
	must("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + schema + " TO writer")
	must("GRANT SELECT ON ALL TABLES IN SCHEMA " + schema + " TO reader")

	// Users who may write need no right to create tables.
	works("writer", "apply", "-f", dir)
	works("writer", "list")
	works("writer", "call", "pay", "--session", "s")
	works("writer", "audit", "list")
	works("writer", "override", "set", "pay", "Pays")
	works("writer", "audit", "prune", "--before", "1d")
	works("writer", "store", "check")
	works("writer", "serve")
	refused("writer", exitFailed, []string{"own"}, "store", "compact")

	// Users who may only read can read.
	works("reader", "list")
	works("reader", "describe", "tool/pay")
	works("reader", "audit", "list")
	works("reader", "audit", "export")
	works("reader", "audit", "verify")
	works("reader", "store", "check")
	works("reader", "serve")
	works("reader", "approvals", "list")
	refused("reader", exitFailed, []string{`user "reader"`, "UPDATE", "toolctl_", "GRANT"}, "apply", "-f", dir)
	refused("reader", exitUnavailable, []string{`user "reader"`, "toolctl_", "GRANT"}, "call", "pay", "--session", "s")
	refused("reader", exitFailed, []string{`user "reader"`, "toolctl_", "GRANT"}, "audit", "prune", "--before", "0s")
	must("DROP SCHEMA " + schema + " CASCADE")
	for _, role := range []string{"owner", "writer", "reader", "nobody"} {
		must("DROP ROLE " + role)
	}
}
