package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkOrdinary is [BenchmarkHop] with ordinary clients of the Go SDK, which declare roots and request progress.
// Over HTTP each concurrent call has its own client, and the floor is a plain reverse proxy. Over stdin and stdout
// there is one client, and the floor is a program that copies both ways.
func BenchmarkOrdinary(b *testing.B) {
	sizes := []int{100, 1 << 10, 100 << 10, 1 << 20}
	bin := buildToolctl(b)
	upstream := launch(b, again(b, "echo-upstream"))
	proxy := launch(b, again(b, "plain-proxy", upstream.url))
	overHTTP := func(name string, protocol protocolVersion, sizes []int, args ...string) {
		serve := launchServe(b, command(bin), args...)
		routes := [3]string{upstream.url + protocol.path, proxy.url + protocol.path, serve.url}
		c := comparison{serve: serve, floor: "proxy", hop: proxy, callers: func(b *testing.B, route, size, inFlight int) (all []func() error) {
			for range inFlight {
				transport := http.DefaultTransport.(*http.Transport).Clone()
				b.Cleanup(transport.CloseIdleConnections)
				cs := openOrdinary(b, &sdk.StreamableClientTransport{Endpoint: routes[route], HTTPClient: &http.Client{Transport: transport}}, protocol.version)
				all = append(all, ordinaryCall(cs, size))
			}
			return all
		}}
		c.run(b, name, sizes...)
	}
	for _, protocol := range versions {
		file := hopManifests(b, upstream.url+protocol.path)
		overHTTP(protocol.name, protocol, sizes, "-f", file)
		if protocol == versions[0] { // with counters and an audit on disk
			store := filepath.Join(b.TempDir(), "state.db")
			if out, err := command(bin, "apply", "-f", file, "--store", store).CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			overHTTP(protocol.name+"-store", protocol, sizes[:1], "--store", store)
		}
	}

	for _, protocol := range versions {
		overStdio(b, bin).run(b, "stdio-"+protocol.name, protocol.version, sizes...)
	}
}

// stdioRoutes are the three routes over stdin and stdout. Each starts its own programs.
type stdioRoutes struct{ echo, bin, manifests string }

func overStdio(b *testing.B, bin string) stdioRoutes {
	b.Helper()
	echo, dir := linked(b, "echo-stdio"), b.TempDir()
	writeFile(b, filepath.Join(dir, "hop.yaml"), fmt.Sprintf(hopPolicy, fmt.Sprintf("command: %q", echo)))
	return stdioRoutes{echo, bin, dir}
}

// commands returns the programs of the routes: the upstream, a program that copies both ways, and serve.
func (r stdioRoutes) commands(b *testing.B) [3]*exec.Cmd {
	all := [3]*exec.Cmd{command(r.echo), again(b, "plain-pipe", r.echo), command(r.bin, "serve", "-f", r.manifests)}
	for _, cmd := range all {
		cmd.Stderr = os.Stderr
	}
	return all
}

// compared returns the comparison of calls through three programs.
func compared(programs [3]*exec.Cmd, callers func(route, size, inFlight int) []func() error) comparison {
	return comparison{serve: &program{Cmd: programs[2]}, floor: "pipe", hop: &program{Cmd: programs[1]},
		callers: func(_ *testing.B, route, size, inFlight int) []func() error { return callers(route, size, inFlight) }}
}

// run measures the client of the SDK, with all calls in one session.
func (r stdioRoutes) run(b *testing.B, name, version string, sizes ...int) {
	programs := r.commands(b)
	var sessions [3]*sdk.ClientSession
	for i, cmd := range programs {
		sessions[i] = openOrdinary(b, &sdk.CommandTransport{Command: cmd}, version)
	}
	c := compared(programs, func(route, size, inFlight int) (all []func() error) {
		for range inFlight {
			all = append(all, ordinaryCall(sessions[route], size))
		}
		return all
	})
	c.run(b, name, sizes...)
}

// hopManifests writes a file with the upstream at an address, and its policy.
func hopManifests(b *testing.B, at string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "hop.yaml")
	writeFile(b, file, fmt.Sprintf(hopPolicy, fmt.Sprintf("url: %q", at)))
	return file
}

// openOrdinary opens a session with default options of the SDK, as most programs do.
func openOrdinary(t testing.TB, over sdk.Transport, version string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "load", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) {},
	})
	cs, err := client.Connect(context.Background(), over, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the session speaks %s and not %s", got, version)
	}
	return cs
}

// ordinaryCall returns a function that calls echo and requests progress.
func ordinaryCall(cs *sdk.ClientSession, size int) func() error {
	args := json.RawMessage(fmt.Sprintf(`{"size":%d,"note":"a call"}`, size))
	return func() error {
		p := &sdk.CallToolParams{Name: "echo", Arguments: args}
		p.SetProgressToken("p1")
		res, err := cs.CallTool(context.Background(), p)
		if err == nil && (res.IsError || res.StructuredContent == nil) {
			err = errors.New("no result")
		}
		return err
	}
}
