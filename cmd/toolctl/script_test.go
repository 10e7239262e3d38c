package main

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	// Most tests wait for other processes, so four for each processor keep it busy. The flag -parallel overrides this.
	_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	testscript.Main(withDatabase{m}, map[string]func(){
		"mcpserver":         mcpServer,    // see mcpserver_test.go
		"echo-upstream":     echoUpstream, // see hop_test.go
		"echo-stdio":        echoStdio,
		"plain-proxy":       plainProxy,
		"plain-pipe":        plainPipe,
		"faulty-stdio":      faultyStdio, // see faulty_test.go
		"faulty-http":       faultyHTTP,
		"changing-upstream": changingUpstream,
		"hold-store":        holdStore,      // see hold_store_test.go
		"asking-stdio":      askingUpstream, // see asking_test.go
		"only-stdio":        onlyUpstream,   // see single_unix_test.go
		"toolctl":           main,
	})
}

// TestScripts runs every command line of testdata/script as a user would. The scripts run in parallel, and the program that
// they call is this test program (TestMain), so it is built once.
func TestScripts(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join(root, "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"postgres-store": postgresStore},
		Setup: func(e *testscript.Env) error {
			e.Setenv("REPO", root)
			e.Setenv("NO_COLOR", "1")
			e.Setenv("TOOLCTL_STORE", "")
			e.Values[scriptTest{}] = e.T()
			serveWeather(e)
			return nil
		},
	})
}
