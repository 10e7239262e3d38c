package main

import (
	"errors"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// endpointOptions are the flags of who may ask "toolctl serve", how often and for how much.
type endpointOptions struct {
	tokenFile    string
	oauth        server.OAuth
	rate         string
	burst        int
	maxRequest   int64
	maxResult    int64
	maxSessions  int
	sessionIdle  time.Duration
	stateless    bool
	instructions string
}

// endpointNeedsHTTP are the flags that mean nothing over stdin and stdout.
var endpointNeedsHTTP = []string{
	"token-file", "oauth-issuer", "oauth-audience", "oauth-resource", "oauth-jwks-url", "oauth-scopes", "oauth-principal-claim", "oauth-groups-claim",
	"rate-limit", "rate-burst", "max-request-bytes", "max-sessions", "session-idle", "stateless",
}

func (o *endpointOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.tokenFile, "token-file", "", "file with one bearer token per line, as NAME:HEX or NAME:HEX:GROUP,GROUP, where HEX is the SHA-256 of the token; toolctl reloads it when it changes; needs --http")
	f.StringVar(&o.oauth.Issuer, "oauth-issuer", "", "authorization server whose access tokens (iss) are accepted; needs --http and --oauth-audience")
	f.StringSliceVar(&o.oauth.Audiences, "oauth-audience", nil, "audience (aud) that tokens must have, such as https://tools.example.com/mcp; any one listed is enough")
	f.StringVar(&o.oauth.Resource, "oauth-resource", "", "public address of /mcp (default: the first --oauth-audience that is a URL)")
	f.StringVar(&o.oauth.JWKSURL, "oauth-jwks-url", "", "address of the issuer's keys (default: the address in its metadata)")
	f.StringSliceVar(&o.oauth.Scopes, "oauth-scopes", nil, "scopes that a token must have (all of them), such as tools:call")
	f.StringVar(&o.oauth.PrincipalClaim, "oauth-principal-claim", "sub", "claim with the name of the principal, such as email")
	f.StringVar(&o.oauth.GroupsClaim, "oauth-groups-claim", "groups", "claim with the groups of the principal, for approvers of policies")
	f.StringVar(&o.rate, "rate-limit", "", "maximum request rate of one principal, or of one address if there is no authentication, such as 100/s, 600/m or 5000/h; needs --http")
	f.IntVar(&o.burst, "rate-burst", 0, "number of requests that may exceed the rate in a burst (default: the number that --rate-limit allows in a second, at least 10)")
	f.Int64Var(&o.maxRequest, "max-request-bytes", admission.DefaultMaxBody, "maximum size of a request in bytes; needs --http")
	f.Int64Var(&o.maxResult, "max-result-bytes", admission.DefaultMaxResult, "maximum size of a result in bytes")
	f.IntVar(&o.maxSessions, "max-sessions", 0, "maximum number of sessions (of clients with protocol 2025-11-25 or older); at the limit a new session ends the one that was idle longest (default: a quarter of --memory-budget at 20 KiB each, which is 3276); needs --http")
	f.DurationVar(&o.sessionIdle, "session-idle", 30*time.Minute, "end a session after this long without requests and streams; needs --http")
	f.BoolVar(&o.stateless, "stateless", false, "answer each request of clients with protocol 2025-11-25 or older without a session, for clients that send no Mcp-Session-Id; needs --http")
	f.StringVar(&o.instructions, "instructions", "", "instructions for models, as text or @FILE (default: the instructions of the only MCP server, else a short text about calls)")
}

func (o *endpointOptions) check(cmd *cobra.Command) error {
	if _, err := parseRate(o.rate, o.burst); err != nil {
		return err
	}
	for _, name := range []string{"oauth-audience", "oauth-resource", "oauth-jwks-url", "oauth-scopes", "oauth-principal-claim", "oauth-groups-claim"} {
		if cmd.Flags().Changed(name) && o.oauth.Issuer == "" {
			return usagef("--%s needs --oauth-issuer: the authorization server whose tokens are accepted", name)
		}
	}
	if o.oauth.Issuer != "" {
		if len(o.oauth.Audiences) == 0 {
			return usagef("--oauth-issuer needs --oauth-audience: tokens for other servers must not be accepted; pass the audience (aud) of tokens for this server, such as https://tools.example.com/mcp")
		}
		if o.oauth.Resource == "" && !slices.ContainsFunc(o.oauth.Audiences, func(a string) bool { return strings.Contains(a, "://") }) {
			return usagef("--oauth-audience %s: no value is a URL: pass the public address of /mcp with --oauth-resource", strings.Join(o.oauth.Audiences, ","))
		}
		if err := o.oauth.Validate(); err != nil {
			return usagef("OAuth: %w", err)
		}
	}
	switch {
	case o.maxRequest < 1:
		return usagef("--max-request-bytes %d: expected 1 or more", o.maxRequest)
	case o.maxSessions < 1 && cmd.Flags().Changed("max-sessions"):
		return usagef("--max-sessions %d: expected 1 or more", o.maxSessions)
	case o.sessionIdle < time.Second:
		return usagef("--session-idle %s: expected 1s or more, such as 30m", o.sessionIdle)
	case o.maxResult < 1:
		return usagef("--max-result-bytes %d: expected 1 or more", o.maxResult)
	}
	return nil
}

// apply puts the flags into the options of the HTTP server.
func (o *endpointOptions) apply(h *server.HTTPOptions) error {
	h.MaxSessions, h.SessionTimeout, h.Stateless = o.maxSessions, o.sessionIdle, o.stateless
	if o.oauth.Issuer != "" {
		h.OAuth = &o.oauth
	}
	if o.tokenFile == "" {
		return nil
	}
	var err error
	h.Tokens, err = gateway.ReadTokens(o.tokenFile)
	switch opened := (*fs.PathError)(nil); {
	case errors.As(err, &opened):
		return usagef("--token-file: %w", err)
	case err != nil:
		return statusError{exitInvalid, err.Error()}
	}
	return nil
}

// limits are what everything that is served is held to.
func (o *serveOptions) limits(memory int64) admission.Limits {
	rate, _ := parseRate(o.rate, o.burst) // check read it
	return admission.Limits{
		MaxCalls: o.maxCalls, PrincipalShare: o.share, MemoryBudget: memory, MaxResultBytes: o.maxResult, MaxBody: o.maxRequest, Rate: rate,
	}
}

// parseRate reads N/s, N/m or N/h.
func parseRate(text string, burst int) (admission.Rate, error) {
	if text == "" {
		if burst != 0 {
			return admission.Rate{}, usagef("--rate-burst needs --rate-limit")
		}
		return admission.Rate{}, nil
	}
	number, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	per, ok := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	switch {
	case err != nil || !ok || n <= 0 || math.IsInf(n, 0) || math.IsNaN(n):
		return admission.Rate{}, usagef("--rate-limit %q: expected a number above 0 by second, minute or hour, such as 100/s, 600/m or 5000/h", text)
	case burst < 0:
		return admission.Rate{}, usagef("--rate-burst %d: expected 1 or more", burst)
	}
	return admission.Rate{PerSecond: n / per.Seconds(), Burst: burst}, nil
}

// maxInstructions bounds what models are told; they read it in every conversation.
const maxInstructions = 64 << 10

// readInstructions returns the text of --instructions.
func (o *endpointOptions) readInstructions() (string, error) {
	path, isFile := strings.CutPrefix(o.instructions, "@")
	if !isFile {
		return o.instructions, nil
	}
	text, err := readFile(path, maxInstructions)
	switch {
	case err != nil:
		return "", usagef("--instructions: %w", err)
	case len(text) > maxInstructions:
		return "", usagef("--instructions: %s is larger than %d bytes", path, maxInstructions)
	}
	return strings.TrimSpace(string(text)), nil
}
