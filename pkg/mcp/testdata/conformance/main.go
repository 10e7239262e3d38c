// Command conformance is the client that @modelcontextprotocol/conformance starts. Its last argument is the
// address of a server, MCP_CONFORMANCE_SCENARIO is the name of the test, and MCP_CONFORMANCE_CONTEXT holds
// the scenario's data for the client. It uses a server as toolctl does: it discovers everything, calls the
// tools, reads a resource, and fills in a prompt.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// hints holds the scenario's data for the client.
type hints struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ToolCalls    []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

func run(ctx context.Context) (err error) {
	if len(os.Args) < 2 {
		return errors.New("expected the address of a server")
	}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	var h hints
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			return err
		}
	}
	server := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	server.Metadata.Name = "conformance"
	server.Spec.URL = os.Args[len(os.Args)-1]
	server.Spec.Auth = authOf(scenario, h, issuerOf(ctx, server.Spec.URL))

	var browsers sync.WaitGroup
	defer browsers.Wait()
	up := mcp.NewUpstreams([]*v1.MCPServer{server}, mcp.Options{
		Logger:              slog.New(slog.NewTextHandler(os.Stderr, nil)),
		AllowPrivateNetwork: true,
		Env:                 func(name string) (string, bool) { return h.env(name) },
		OpenBrowser: func(ctx context.Context, _ v1.Key, address string) error {
			browsers.Go(func() { browse(ctx, address) })
			return nil
		},
	})
	defer func() { err = errors.Join(err, up.Close()) }()
	state := up.Discover(ctx, server.Key())[0]
	if !state.Ready {
		return fmt.Errorf("not ready: %s", state.Reason)
	}
	return errors.Join(callTools(ctx, up, state, h), readFirst(ctx, up, state))
}

// authOf chooses how to authenticate: with a client secret alone in the scenarios for the client
// credentials grant, and otherwise with the sign-in of a person.
func authOf(scenario string, h hints, issuer string) *v1.Auth {
	switch {
	case !strings.HasPrefix(scenario, "auth/"):
		return nil
	case strings.HasPrefix(scenario, "auth/client-credentials-basic"):
		return &v1.Auth{OAuth2ClientCredentials: &v1.OAuth2ClientCredentials{ClientIDEnv: "CLIENT_ID", ClientSecretEnv: "CLIENT_SECRET", Issuer: issuer}}
	}
	code := &v1.OAuth2AuthorizationCode{}
	if h.ClientID != "" {
		code.ClientIDEnv, code.Issuer = "CLIENT_ID", issuer
	}
	if h.ClientSecret != "" {
		code.ClientSecretEnv = "CLIENT_SECRET"
	}
	return &v1.Auth{OAuth2AuthorizationCode: code}
}

// issuerOf returns the issuer that a person would write into the manifest. The suite provides credentials
// without their issuer, so issuerOf uses the authorization server that the MCP server names. It is empty if
// the server names no authorization server.
func issuerOf(ctx context.Context, server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	root := url.URL{Scheme: u.Scheme, Host: u.Host}
	for _, path := range []string{"/.well-known/oauth-protected-resource" + u.Path, "/.well-known/oauth-protected-resource"} {
		root.Path = path
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, root.String(), nil)
		if err != nil {
			return ""
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return ""
		}
		var meta struct {
			Servers []string `json:"authorization_servers"`
		}
		err = json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&meta)
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK && err == nil && len(meta.Servers) > 0 {
			return meta.Servers[0]
		}
	}
	return ""
}

func (h hints) env(name string) (string, bool) {
	switch name {
	case "CLIENT_ID":
		return h.ClientID, h.ClientID != ""
	case "CLIENT_SECRET":
		return h.ClientSecret, h.ClientSecret != ""
	}
	return "", false
}

// browse acts as a person's browser: it follows the redirects of the authorization server, the last of
// which leads to the client.
func browse(ctx context.Context, address string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		return
	}
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		return
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
}

// callTools makes the calls that the scenario requests, or else one call of each tool. The scenario judges
// tools that report failure.
func callTools(ctx context.Context, up *mcp.Upstreams, state mcp.ServerState, h hints) error {
	if len(h.ToolCalls) > 0 {
		for _, c := range h.ToolCalls {
			report(c.Name, call(ctx, up, state.Key, c.Name, c.Arguments))
		}
		return nil
	}
	var errs []error
	for _, t := range state.Tools {
		if t.Problem != "" {
			fmt.Fprintf(os.Stderr, "%s: left out: %s\n", t.Remote, t.Problem)
			continue
		}
		args, err := arguments(t, state)
		if err == nil {
			err = call(ctx, up, state.Key, t.Remote, args)
		}
		report(t.Remote, err)
		var lost *v1.MCPError
		if errors.As(err, &lost) && lost.Code == 0 {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func call(ctx context.Context, up *mcp.Upstreams, key v1.Key, tool string, args json.RawMessage) error {
	_, err := up.Call(ctx, key, tool, args, false)
	return err
}

func report(tool string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", tool, err)
	}
}

// arguments returns arguments that match a tool's schema, with a value for each property.
func arguments(t mcp.DiscoveredTool, state mcp.ServerState) (json.RawMessage, error) {
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(t.InputSchema, &schema); err != nil {
		return nil, err
	}
	args := map[string]any{}
	for name, p := range schema.Properties {
		switch p.Type {
		case "number", "integer":
			args[name] = len(args) + 3
		case "boolean":
			args[name] = true
		case "string":
			args[name] = "us-west1"
		}
	}
	if t.Remote == "json_schema_echo" { // returns the schema of another tool, to show what remains of it
		for _, other := range state.Tools {
			if other.Remote == "json_schema_2020_12_tool" {
				args = map[string]any{"schema": other.InputSchema}
			}
		}
	}
	return json.Marshal(args)
}

// readFirst reads the first resource and fills in the first prompt.
func readFirst(ctx context.Context, up *mcp.Upstreams, state mcp.ServerState) error {
	if len(state.Resources) > 0 {
		_, err := up.ReadResource(ctx, state.Key, state.Resources[0].URI)
		report(state.Resources[0].URI, err)
	}
	if len(state.Prompts) > 0 {
		args := map[string]string{}
		for _, a := range state.Prompts[0].Arguments {
			args[a.Name] = "x"
		}
		_, err := up.GetPrompt(ctx, state.Key, state.Prompts[0].Name, args)
		report(state.Prompts[0].Name, err)
	}
	return nil
}
