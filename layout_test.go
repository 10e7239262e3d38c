package toolctl_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"os"
	"os/exec"
)

const module = "toolctl.dev/toolctl/"

// layout says which packages of ours each package may import, and which
// packages of others it must never. A package that is not here is refused, so a
// new one states its place. Tests may import more.
var layout = map[string]struct {
	may, never []string
	all        bool // it may import every package of ours
}{
	"api/v1":              {never: []string{module, "go.yaml.in/", "sigs.k8s.io/", "github.com/"}},
	"pkg/manifest":        {may: []string{"api/v1", "internal/fileset", "internal/regular", "internal/ignore"}, never: []string{gojsonschema, santhosh, sdk}},
	"pkg/search":          {may: []string{"api/v1", "pkg/policy", "pkg/schema"}, never: []string{sdk, "net/http"}},
	"pkg/schema":          {may: []string{"api/v1"}},
	"pkg/validate":        {may: []string{"api/v1", "pkg/schema"}},
	"internal/clip":       {},
	"internal/jsontext":   {},
	"internal/parallel":   {},
	"internal/template":   {},
	"internal/params":     {may: []string{"api/v1", "pkg/validate"}},
	"internal/textcheck":  {may: []string{"internal/params", "pkg/validate"}},
	"pkg/prompt":          {may: []string{"api/v1", "pkg/validate", "internal/params", "internal/template", "internal/textcheck"}},
	"internal/redact":     {may: []string{"api/v1"}, never: []string{sdk}},
	"internal/jsonpath":   {},
	"internal/jmespath":   {},
	"internal/netaddr":    {},
	"internal/response":   {},
	"internal/outbound":   {may: []string{"api/v1", "internal/netaddr", "internal/regular"}},
	"internal/ignore":     {},
	"internal/fileset":    {},
	"internal/envref":     {may: []string{"api/v1"}},
	"internal/proc":       {},
	"internal/until":      {}, // tests alone
	"internal/callctx":    {may: []string{"api/v1"}},
	"pkg/permit":          {may: []string{"api/v1", "internal/netaddr"}},
	"pkg/policy":          {may: []string{"api/v1", "internal/wirename"}},
	"pkg/registry":        {may: []string{"internal/tracing", "internal/wirename", "pkg/search", "pkg/schema", "api/v1", "internal/callctx", "pkg/validate", "pkg/policy", "internal/redact", "internal/budget", "pkg/prompt"}, never: []string{"net/http"}},
	"pkg/executors":       {may: []string{"pkg/schema", "api/v1", "internal/proc", "internal/budget", "internal/regular", "internal/response", "internal/template", "internal/redact", "internal/netaddr", "internal/outbound", "internal/envref", "internal/jmespath"}, never: []string{sdk}},
	"pkg/importer":        {may: []string{"api/v1", "internal/regular", "pkg/manifest"}, never: []string{sdk}},
	"pkg/openapi":         {may: []string{"api/v1", "pkg/schema", "internal/netaddr", "internal/regular", "pkg/importer", "pkg/manifest", "pkg/validate"}, never: []string{sdk}},
	"pkg/overlay":         {may: []string{"pkg/schema", "api/v1", "internal/regular", "pkg/manifest", "pkg/registry"}, never: []string{sdk}},
	"internal/sarif":      {may: []string{"api/v1"}},
	"pkg/lint":            {may: []string{"pkg/schema", "api/v1", "internal/sarif", "internal/inspect", "internal/parallel", "internal/wirename", "pkg/lock", "pkg/policy", "pkg/registry", "pkg/search"}, never: []string{sdk}},
	"pkg/store":           {may: []string{"api/v1", "pkg/store"}, never: []string{"modernc.org/"}},
	"pkg/store/sqlite":    {may: []string{"api/v1", "internal/fileset", "internal/perm", "internal/regular", "pkg/store", "pkg/store/internal/plan", "pkg/store/internal/sqlstore", "pkg/store/internal/chain", "pkg/store/internal/watch"}},
	"pkg/mcp/wire":        {may: []string{"api/v1", "internal/jsontext"}},
	"pkg/mcp":             {may: []string{"internal/tracing", "pkg/schema", "pkg/mcp/wire", "api/v1", "internal/proc", "internal/callctx", "internal/budget", "internal/fileset", "internal/perm", "internal/regular", "internal/response", "internal/redact", "internal/netaddr", "internal/outbound", "internal/envref", "internal/inspect"}},
	"pkg/store/memory":    {may: []string{"pkg/policy", "pkg/store", "pkg/store/sqlite"}},
	"pkg/store/backends":  {may: []string{"pkg/store", "pkg/store/memory", "pkg/store/postgres", "pkg/store/sqlite"}},
	"pkg/store/postgres":  {may: []string{"api/v1", "pkg/store", "pkg/store/internal/plan", "pkg/store/internal/sqlstore", "pkg/store/internal/chain", "pkg/store/internal/watch"}},
	"pkg/store/auditlog":  {may: []string{"api/v1", "pkg/store"}, never: []string{sdk}},
	"pkg/store/storetest": {may: []string{"api/v1", "pkg/store"}},
	"pkg/diff":            {may: []string{"api/v1", "pkg/schema", "pkg/search", "internal/sarif", "pkg/validate", "pkg/policy", "pkg/prompt", "internal/redact", "internal/jsontext", "internal/clip"}, never: []string{sdk}},
	"pkg/plan":            {may: []string{"api/v1", "pkg/diff", "pkg/manifest", "pkg/store", "internal/jsontext"}, never: []string{sdk}},
	"pkg/rollout":         {may: []string{"api/v1", "pkg/plan", "pkg/store"}, never: []string{sdk}},
	"pkg/source":          {may: []string{"api/v1", "internal/proc", "internal/regular", "pkg/manifest", "pkg/overlay"}, never: []string{sdk}},
	"pkg/source/oci":      {may: []string{"internal/fileset", "internal/netaddr", "internal/regular", "pkg/source"}, never: []string{sdk}},
	"pkg/mcp/mcptest":     {may: []string{"api/v1"}},
	"pkg/admission":       {may: []string{"api/v1", "internal/budget"}, never: []string{sdk}},
	"pkg/mcp/server":      {may: []string{"internal/tracing", "pkg/schema", "pkg/mcp/wire", "internal/access", "pkg/admission", "api/v1", "internal/callctx", "pkg/mcp", "internal/wirename", "internal/budget", "internal/argtext", "internal/netaddr", "internal/seal", "pkg/replica"}},
	"pkg/replica":         {may: []string{"internal/seal", "pkg/store"}, never: []string{sdk}},
	"internal/access":     {may: []string{"internal/netaddr"}, never: []string{sdk}},
	"internal/seal":       {may: []string{"internal/perm", "internal/regular"}},
	"internal/budget":     {},
	"internal/argtext":    {},
	"internal/regular":    {},
	"internal/perm":       {},
	"internal/wirename":   {},
	"internal/tty":        {},
	"internal/tracing":    {never: []string{"go.opentelemetry.io/otel/sdk"}},
	"pkg/gateway":         {may: []string{"api/v1", "pkg/admission", "internal/envref", "internal/inspect", "internal/perm", "internal/regular", "internal/tracing", "internal/wirename", "pkg/diff", "pkg/executors", "pkg/lock", "pkg/manifest", "pkg/mcp", "pkg/mcp/server", "pkg/permit", "pkg/plan", "pkg/policy", "pkg/prompt", "pkg/registry", "pkg/replica", "pkg/resources", "pkg/rollout", "pkg/search", "pkg/source", "pkg/search/embedding", "pkg/store", "internal/seal"}, never: []string{sdk}}, // it joins the parts
	"pkg/console":         {may: []string{"pkg/schema", "api/v1", "internal/argtext", "internal/inspect", "internal/redact", "internal/wirename", "pkg/action", "pkg/admission", "pkg/diff", "pkg/gateway", "pkg/manifest", "pkg/mcp", "pkg/mcp/server", "pkg/policy", "pkg/registry", "pkg/rollout", "pkg/scenario", "pkg/scenario/report", "pkg/source", "pkg/store"}, never: []string{sdk, "k8s.io/", "sigs.k8s.io/"}},
	"pkg/action":          {may: []string{"internal/tty", "pkg/permit", "pkg/schema", "api/v1", "internal/clip", "internal/envref", "internal/fileset", "internal/jsonpath", "internal/jsontext", "internal/seal", "pkg/admission", "pkg/mcp/server", "pkg/replica", "pkg/telemetry", "internal/mcpclients", "internal/mcpconfig", "internal/netaddr", "internal/parallel", "internal/perm", "internal/promptpack", "pkg/importer", "pkg/openapi", "pkg/source/oci", "pkg/store/auditlog", "pkg/validate", "pkg/agent", "pkg/agent/anthropic", "pkg/agent/google", "pkg/agent/openai", "pkg/agent/scripted", "pkg/prompt", "pkg/scenario/report", "pkg/scenario/update", "internal/inspect", "internal/redact", "internal/regular", "pkg/diff", "pkg/executors", "pkg/gateway", "pkg/lint", "pkg/lock", "pkg/manifest", "pkg/mcp", "pkg/overlay", "pkg/plan", "pkg/policy", "pkg/registry", "pkg/rollout", "pkg/search", "pkg/scenario", "pkg/source", "pkg/search/embedding", "pkg/store", "pkg/store/backends"}, never: []string{sdk}},
	"pkg/authoring":       {may: []string{"pkg/admission", "pkg/gateway", "pkg/mcp/server", "api/v1", "manifests", "pkg/action", "pkg/diff", "pkg/lint", "pkg/manifest", "pkg/registry", "pkg/scenario", "schemas"}, never: []string{sdk}},
	"pkg/resources":       {may: []string{"api/v1"}, never: []string{sdk}},
	"internal/mcpclients": {never: []string{sdk}},
	"internal/mcpconfig":  {may: []string{"api/v1", "internal/promptpack", "pkg/manifest"}, never: []string{sdk}},
	"internal/promptpack": {may: []string{"api/v1", "internal/jsontext", "internal/params", "internal/textcheck", "pkg/manifest"}, never: []string{sdk}},
	"pkg/lock":            {may: []string{"api/v1", "internal/fileset", "internal/regular"}, never: []string{sdk}},
	"internal/inspect":    {may: []string{"pkg/schema", "api/v1", "internal/redact"}, never: []string{"github.com/"}},
	"pkg/agent":           {may: []string{"api/v1", "internal/fileset", "internal/perm", "internal/regular", "internal/response", "pkg/agent", "pkg/registry", "pkg/policy", "pkg/prompt", "internal/redact", "pkg/validate", "internal/wirename"}, never: []string{sdk}},
	"pkg/agent/scripted":  {may: []string{"api/v1", "pkg/agent"}},
	"pkg/agent/openai":    {may: []string{"pkg/schema", "api/v1", "pkg/agent", "pkg/agent/internal/provider"}},
	"pkg/agent/anthropic": {may: []string{"api/v1", "pkg/agent", "pkg/agent/internal/provider"}},
	"pkg/agent/google":    {may: []string{"api/v1", "pkg/agent", "pkg/agent/internal/provider"}},
	"pkg/scenario":        {may: []string{"api/v1", "pkg/schema", "pkg/registry", "pkg/search", "pkg/policy", "internal/redact", "pkg/validate", "pkg/prompt", "pkg/agent", "pkg/agent/scripted", "internal/jmespath", "internal/params", "internal/textcheck"}, never: []string{sdk}},
	"pkg/scenario/report": {may: []string{"api/v1", "internal/fileset", "internal/regular", "pkg/scenario"}, never: []string{sdk}},
	"pkg/scenario/update": {may: []string{"api/v1", "internal/regular", "pkg/scenario"}, never: []string{sdk}},
	"pkg/telemetry":       {never: []string{sdk}},
	"internal/schemagen":  {may: []string{"api/v1", "pkg/manifest", "pkg/scenario"}},
	"manifests":           {},
	"schemas":             {may: []string{"api/v1"}},
	"schemas/gen":         {may: []string{"internal/schemagen"}},
	"cmd/toolctl":         {all: true}, // it joins the parts

	"pkg/search/embedding":      {may: []string{"pkg/search"}, never: []string{sdk}},
	"pkg/store/postgres/pgtest": {},
}

const (
	gojsonschema = "github.com/xeipuuv/"
	santhosh     = "github.com/santhosh-tekuri/"
	sdk          = "github.com/modelcontextprotocol/"
)

// anywhere may be imported by every package but api/v1: it knows nothing of toolctl.
var anywhere = []string{"internal/clip", "internal/jsontext", "internal/parallel"}

// onlyIn says which package alone may import a library.
var onlyIn = map[string]string{
	gojsonschema:           "pkg/validate",
	santhosh:               "pkg/validate",
	sdk:                    "pkg/mcp", // and the packages under it
	"modernc.org/sqlite":   "pkg/store/sqlite",
	"github.com/jackc/":    "pkg/store/postgres",
	"github.com/jmespath/": "internal/jmespath",
	"oras.land/":           "pkg/source/oci",

	"github.com/openai/":      "pkg/agent/openai",
	"github.com/anthropics/":  "pkg/agent/anthropic",
	"google.golang.org/genai": "pkg/agent/google",

	"go.opentelemetry.io/otel/sdk":       "pkg/telemetry", // the rest knows the API alone
	"go.opentelemetry.io/otel/exporters": "pkg/telemetry",
	"github.com/prometheus/":             "pkg/telemetry",
}

func TestLayout(t *testing.T) {
	seen := map[string]bool{}
	err := fs.WalkDir(os.DirFS("."), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (p != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || p == "tools" || p == "k8s") { // these two are modules of their own
			return fs.SkipDir
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		dir, _, _ := strings.Cut(path.Dir(p), "/internal/") // an internal package has the rules of its owner
		rule, ok := layout[dir]
		if !ok {
			t.Errorf("%s: package %s has no line in layout: say what it may import", p, dir)
			return nil
		}
		seen[dir] = true
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if ours, ok := strings.CutPrefix(imp, module); ok && !rule.all && !strings.HasPrefix(ours, dir+"/internal/") && !slices.Contains(anywhere, ours) && !slices.Contains(rule.may, ours) {
				t.Errorf("%s: %s must not import %s", p, dir, ours)
			}
			for _, n := range rule.never {
				if strings.HasPrefix(imp, n) {
					t.Errorf("%s: %s must not import %s", p, dir, imp)
				}
			}
			for lib, owner := range onlyIn {
				if strings.HasPrefix(imp, lib) && dir != owner && !strings.HasPrefix(dir, owner+"/") {
					t.Errorf("%s: only %s may import %s", p, owner, imp)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range layout {
		if !seen[dir] {
			t.Errorf("layout has a line for %s, which is not there", dir)
		}
	}
}

// cmd/toolctl reads flags and prints: what runs beside something else, or is shared, is in a
// package that others can use too.
func TestCommandHasNoGoroutineAndNoLock(t *testing.T) {
	files, err := fs.Glob(os.DirFS("."), "cmd/toolctl/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, p := range files {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if strings.HasPrefix(spec.Path.Value, `"sync`) {
				t.Errorf("%s imports %s", p, spec.Path.Value)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", set.Position(g.Pos()))
			}
			return true
		})
	}
}

// A test that sleeps is slow on every machine and fails on a busy one. In a bubble of testing/synctest the clock is the
// bubble's own; what another process does is waited for with internal/until.
func TestTestsDoNotSleep(t *testing.T) {
	err := fs.WalkDir(os.DirFS("."), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, "_test.go") || p == "layout_test.go" {
			return err
		}
		raw, err := os.ReadFile(p)
		if bytes.Contains(raw, []byte("time.Sleep")) && !bytes.Contains(raw, []byte(`"testing/synctest"`)) {
			t.Errorf("%s: time.Sleep: wait for the event itself, use internal/until, or run the test in a bubble of testing/synctest", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// maxTracked is the size in bytes above which a file in git needs a line in largeFiles.
const maxTracked = 500_000

// largeFiles are the tracked files over maxTracked, each with the reason why git keeps it.
var largeFiles = map[string]string{}

// A built program of 64 MB once stood in git for weeks: every clone carries such a file for ever.
// TestServersAreAdmitted: what this program serves is a list of routes in pkg/admission, so that no entrance is
// beside the limits.
func TestServersAreAdmitted(t *testing.T) {
	allowed := map[string]string{
		"pkg/admission/routes.go": "the routes themselves",
		"pkg/mcp/server/http.go":  "its handler is Routes",
		"pkg/telemetry/scrape.go": "its handler is made by the caller, of Routes",
		"pkg/mcp/signin.go":       "it takes one callback of a sign-in at this machine",
	}
	err := fs.WalkDir(os.DirFS("."), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") || strings.HasSuffix(path.Dir(p), "test") || strings.HasPrefix(p, "k8s/") || allowed[p] != "" {
			return err
		}
		raw, err := os.ReadFile(p)
		for _, makes := range []string{"http.NewServeMux(", "http.Server{", "http.Serve(", "http.ListenAndServe", "httptest.NewServer("} {
			if bytes.Contains(raw, []byte(makes)) && !bytes.Contains(raw, []byte("//	err = "+makes)) {
				t.Errorf("%s: %s: add the routes to those of pkg/admission, which holds them to the limits", p, makes)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTrackedFilesAreSmall(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("this tree is not a git checkout: ", err)
	}
	for name := range bytes.SplitSeq(bytes.TrimRight(out, "\x00"), []byte{0}) {
		info, err := os.Lstat(string(name))
		if err != nil {
			continue // deleted in the work tree, not committed yet
		}
		if info.Size() > maxTracked && largeFiles[string(name)] == "" {
			t.Errorf("%s has %d bytes, more than %d: take it out of git, or add it to largeFiles with the reason", name, info.Size(), maxTracked)
		}
	}
}

// budgets are the most lines of code that each package may have with the packages below it: without tests, comments and
// blank lines. Each number is a ceiling, what the package had when it was last set, rounded up to the next 50. A commit
// that needs more raises the number and says why; one that deletes much lowers it.
var budgets = map[string]int{
	".": 101050, // the main module

	"api/v1":        2800,
	"cmd/toolctl":   7750,
	"internal":      9700,
	"manifests":     50,
	"pkg/action":    7950,
	"pkg/admission": 1050,
	"pkg/agent":     5250,
	"pkg/authoring": 500,
	"pkg/console":   5100,
	"pkg/diff":      3850,
	"pkg/executors": 3450,
	"pkg/gateway":   3550,
	"pkg/importer":  800,
	"pkg/lint":      950,
	"pkg/lock":      700,
	"pkg/manifest":  3600,
	"pkg/mcp":       11700,
	"pkg/openapi":   3300,
	"pkg/overlay":   1600,
	"pkg/permit":    200,
	"pkg/plan":      450,
	"pkg/policy":    1950,
	"pkg/prompt":    750,
	"pkg/registry":  3450,
	"pkg/replica":   900,
	"pkg/resources": 100,
	"pkg/rollout":   200,
	"pkg/scenario":  5650,
	"pkg/schema":    450,
	"pkg/search":    1350,
	"pkg/source":    2150,
	"pkg/store":     6050,
	"pkg/telemetry": 450,
	"pkg/validate":  3500,
	"schemas":       600,
}

// supports are packages for tests alone, which count as tests.
var supports = []string{"internal/until", "pkg/agent/internal/wiretest", "pkg/mcp/mcptest", "pkg/store/postgres/pgtest", "pkg/store/storetest"}

func TestLinesOfCode(t *testing.T) {
	lines := map[string]int{}
	err := fs.WalkDir(os.DirFS("."), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipped(p, d)
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		n := linesOfCode(raw)
		lines[owner(p)] += n
		lines["."] += n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for of, n := range lines {
		what := of
		if of == "." {
			what = "the main module"
		}
		switch most, ok := budgets[of]; {
		case !ok:
			t.Errorf("%s has %d lines of code and no line in budgets of layout_test.go: add %q: %d, and say in the commit what it is for", what, n, of, (n+49)/50*50)
		case n > most:
			t.Errorf("%s has %d lines of code, and the line %q of budgets in layout_test.go allows %d: find %d lines that can go, or raise the number to %d and say in the commit why",
				what, n, of, most, n-most, (n+49)/50*50)
		}
	}
	for of := range budgets {
		if lines[of] == 0 {
			t.Errorf("budgets in layout_test.go has a line for %s, which has no code: delete the line", of)
		}
	}
}

// skipped leaves out other modules, what is no Go code of ours, and packages for tests.
func skipped(p string, d fs.DirEntry) error {
	if p == "." {
		return nil
	}
	if _, err := os.Stat(path.Join(p, "go.mod")); err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
		return fs.SkipDir
	}
	if slices.Contains(supports, p) {
		return fs.SkipDir
	}
	return nil
}

// owner is the line of budgets that a file counts to: the folder below pkg/, api/ or cmd/, or else the one at the top.
func owner(p string) string {
	parts := strings.Split(p, "/")
	if len(parts) > 2 && slices.Contains([]string{"api", "cmd", "pkg"}, parts[0]) {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// linesOfCode counts the lines that have a token, and those of texts over several lines that are not blank.
func linesOfCode(src []byte) (n int) {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	last := 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && text == "\n" { // at the end of a line that has others
			continue
		}
		at := file.Line(pos)
		for line := range strings.SplitSeq(text, "\n") {
			if at > last && (text == "" || strings.TrimSpace(line) != "") {
				n++
				last = at
			}
			at++
		}
	}
}

func TestLinesOfCodeAreCounted(t *testing.T) {
	const src = "// Package x is not counted.\npackage x\n\n/* nor\nthis */\nvar a, b = `one\n\ntwo`, 1 // one line\n\nfunc f() {\n\tf()\n}\n"
	if n := linesOfCode([]byte(src)); n != 6 {
		t.Errorf("%d lines, want 6", n)
	}
}
