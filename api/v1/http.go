package v1

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// HTTPSpec says how a call becomes an HTTP request and its response a result. Arguments go into the URL template,
// query_params and header_params, in this order; the remaining arguments become the query for GET, HEAD and DELETE and
// the JSON body for every other method.
type HTTPSpec struct {
	// URL is the address. Arguments may stand in its path and query as {{.name}}, never in
	// the scheme, user, host or port. ${VAR} is read from the environment. Required.
	// Example: https://api.example.com/v1/cities/{{.city}}.
	URL string `json:"url" check:"required,url,env"`
	// Method is the HTTP method. Default: POST. Example: GET.
	Method string `json:"method,omitempty" check:"oneof=GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS"`
	// Headers are sent with every request; ${VAR} and ${VAR:-default} are read from the environment.
	// Example: {Authorization: "Bearer ${WEATHER_API_KEY}"}.
	Headers map[string]string `json:"headers,omitempty" check:"env"`
	// HeadersFromEnv lists entries "Header=VAR", which set a header to the value of a variable, and bare names VAR,
	// which ${} may read. Default: every ${VAR} named in the manifest may be read. Example:
	// ["X-Api-Key=WEATHER_API_KEY"].
	HeadersFromEnv []string `json:"headers_from_env,omitempty"`
	// TimeoutMS is the time for one attempt in milliseconds; the tool's timeout_ms bounds all attempts.
	// Default: the tool's timeout_ms. Example: 2000.
	TimeoutMS int `json:"timeout_ms,omitempty" check:"min=0"`
	// OmitEmpty leaves out parts without a value: a header or a query parameter whose template prints an argument that
	// is absent, null or "", an argument of the query that is "", and the members of a body that request.body_mapping
	// makes null. Default: false; an absent argument of a template is an error.
	OmitEmpty bool `json:"omit_empty,omitempty"`
	// Request says where arguments go.
	Request *HTTPRequest `json:"request,omitempty"`
	// Response defines how the response becomes the result.
	Response *HTTPResponse `json:"response,omitempty"`
	// Redact lists the fields to mask in results and error bodies, like spec.redact. With a body_mapping of the
	// response, masking happens before the mapping, so the entries name parts of the body.
	Redact []string `json:"redact,omitempty"`
	// Retry defines how failed attempts are repeated.
	Retry *HTTPRetry `json:"retry,omitempty"`
	// Paginate reads the pages after the first, and combines their items into one list.
	Paginate *HTTPPaginate `json:"paginate,omitempty"`
	// RateLimit limits the rate of requests that the tool sends; calls wait for their turn.
	RateLimit *HTTPRateLimit `json:"rate_limit,omitempty"`
	// Multimodal also turns text responses, such as SVG, into parts, and requests them.
	Multimodal *HTTPMultimodal `json:"multimodal,omitempty"`
	// Auth defines how the request authenticates.
	Auth *Auth `json:"auth,omitempty"`
	// TLS sets certificates.
	TLS *TLS `json:"tls,omitempty"`
	// AllowPrivateNetwork permits loopback, link-local, private and metadata addresses. Default: false.
	AllowPrivateNetwork bool `json:"allow_private_network,omitempty"`
	// AllowRedirectHosts lists hosts, besides the URL's own, that a redirect may lead to.
	// Credentials are never sent there. Example: [cdn.example.com].
	AllowRedirectHosts []string `json:"allow_redirect_hosts,omitempty"`
}

// Values of query_styles (OpenAPI 3.1.1, section 4.8.12.4).
const (
	// StyleComma is the style form of OpenAPI with explode false.
	StyleComma = "comma"
	// StyleSpace is spaceDelimited.
	StyleSpace = "space"
	// StylePipe is pipeDelimited.
	StylePipe = "pipe"
	// StyleDeepObject is deepObject.
	StyleDeepObject = "deep_object"
	// StyleMembers is the style form with explode, for objects.
	StyleMembers = "members"
)

// transportHeaders are set only by the transport: they frame the message, and with them a manifest could bypass the
// limits (a body of another length, an upgrade).
var transportHeaders = []string{"Accept-Encoding", "Connection", "Content-Length", "Expect", "Keep-Alive",
	"Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// IsTransportHeader reports whether toolctl itself sets a header, so that manifests cannot.
func IsTransportHeader(name string) bool {
	return slices.ContainsFunc(transportHeaders, func(h string) bool { return strings.EqualFold(h, name) })
}

// HTTPRequest defines where arguments go. Static values override those of the model.
type HTTPRequest struct {
	// QueryParams names the arguments that go into the query. Example: [units, lang].
	QueryParams []string `json:"query_params,omitempty"`
	// QueryStyles defines how lists and objects are written in the query, by argument. comma, space and pipe make one
	// parameter (ids=1,2), deep_object makes one per member (filter[age]=3), and members makes one per member with the
	// member's own name (age=3). Default: a list becomes one parameter per item (ids=1&ids=2), an object its JSON.
	// Example: {ids: comma}.
	QueryStyles map[string]string `json:"query_styles,omitempty" check:"oneof=comma|space|pipe|deep_object|members"`
	// HeaderParams are headers rendered from arguments. Example: {X-Request-Tag: "{{.tag}}"}.
	HeaderParams map[string]string `json:"header_params,omitempty"`
	// BodyMapping is a JMESPath expression that makes the body from the remaining arguments. Example: "{query: q, page:
	// {size: limit}}".
	BodyMapping string `json:"body_mapping,omitempty"`
	// Exclude names arguments that are not sent. Example: [reason].
	Exclude []string `json:"exclude,omitempty"`
	// StaticQuery is always in the query. Example: {version: "2"}.
	StaticQuery map[string]string `json:"static_query,omitempty"`
	// StaticHeaders are always sent.
	StaticHeaders map[string]string `json:"static_headers,omitempty"`
	// StaticBody is always in the body. Example: {source: toolctl}.
	StaticBody map[string]json.RawMessage `json:"static_body,omitempty"`
}

// HTTPResponse defines how a response becomes the result.
type HTTPResponse struct {
	// BodyMapping is a JMESPath expression over the response body. Example: "data.items[0]".
	BodyMapping string `json:"body_mapping,omitempty"`
	// MaxBytes is the maximum size of the body in bytes, after decompression; a larger body is an error. Default:
	// 10485760. Example: 65536.
	MaxBytes int64 `json:"max_bytes,omitempty" check:"min=0"`
}

// HTTPRetry defines how failed attempts are repeated, within the tool's timeout_ms.
type HTTPRetry struct {
	// MaxAttempts is the maximum number of attempts, including the first. Default: 3. Example: 5.
	MaxAttempts int `json:"max_attempts,omitempty" check:"min=0,max=100"`
	// InitialDelayMS is the wait before the second attempt in milliseconds; it doubles each time,
	// with jitter. Default: 200.
	InitialDelayMS int `json:"initial_delay_ms,omitempty" check:"min=0"`
	// MaxDelayMS is the longest wait in milliseconds. Default: 5000.
	MaxDelayMS int `json:"max_delay_ms,omitempty" check:"min=0"`
	// RetryOn lists the status codes to retry on, if the method or hints make that safe. Default: [429, 500, 502, 503,
	// 504]. Example: [429, 503].
	RetryOn []int `json:"retry_on,omitempty"`
}

// HTTPMultimodal turns responses into parts, by their media type. A response that is neither JSON nor text becomes a
// part even without it.
type HTTPMultimodal struct {
	// Enabled turns this on. Default: false.
	Enabled bool `json:"enabled,omitempty"`
	// AcceptTypes are the media types that become parts; a trailing /* matches all of a type.
	// Default: [image/*, audio/*, video/*, application/pdf]. Example: [image/png].
	AcceptTypes []string `json:"accept_types,omitempty"`
}

// Auth defines how requests authenticate; exactly one member is set.
type Auth struct {
	// BearerEnv is the variable with a bearer token (RFC 6750). Example: WEATHER_TOKEN.
	BearerEnv string `json:"bearer_env,omitempty"`
	// Basic is HTTP basic authentication (RFC 7617).
	Basic *BasicAuth `json:"basic,omitempty"`
	// OAuth2ClientCredentials fetches tokens by the client credentials grant (RFC 6749, section 4.4).
	OAuth2ClientCredentials *OAuth2ClientCredentials `json:"oauth2_client_credentials,omitempty"`
	// OAuth2AuthorizationCode signs a person in through a browser (RFC 6749, section 4.1, with
	// PKCE); MCP servers only.
	OAuth2AuthorizationCode *OAuth2AuthorizationCode `json:"oauth2_authorization_code,omitempty"`
}

// BasicAuth is HTTP basic authentication (RFC 7617).
type BasicAuth struct {
	// UsernameEnv is the variable with the user name. Required. Example: API_USER.
	UsernameEnv string `json:"username_env" check:"required"`
	// PasswordEnv is the variable with the password. Required. Example: API_PASSWORD.
	PasswordEnv string `json:"password_env" check:"required"`
}

// OAuth2ClientCredentials is the client credentials grant (RFC 6749, section 4.4).
type OAuth2ClientCredentials struct {
	// TokenURL is the token endpoint. Required for HTTP tools; an MCP server needs it or issuer.
	// Example: https://auth.example.com/token.
	TokenURL string `json:"token_url,omitempty"`
	// Issuer is the authorization server that issued the credentials, whose token endpoint is found by
	// discovery (RFC 8414); they are sent to no other that an MCP server names. MCP servers only.
	// Example: https://auth.example.com.
	Issuer string `json:"issuer,omitempty"`
	// ClientIDEnv is the variable that holds the client id. Required. Example: API_CLIENT_ID.
	ClientIDEnv string `json:"client_id_env" check:"required"`
	// ClientSecretEnv is the variable that holds the client secret. Required. Example: API_CLIENT_SECRET.
	ClientSecretEnv string `json:"client_secret_env" check:"required"`
	// Scopes are asked for. Example: [read].
	Scopes []string `json:"scopes,omitempty"`
}

// OAuth2AuthorizationCode is the authorization code grant with PKCE (RFC 7636).
type OAuth2AuthorizationCode struct {
	// Issuer is the authorization server at which the client was registered: its credentials are sent to no
	// other that an MCP server names. With client_id_env it or token_url is required.
	// Example: https://auth.example.com.
	Issuer string `json:"issuer,omitempty"`
	// TokenURL is the only token endpoint that gets the client's credentials. Example: https://auth.example.com/token.
	TokenURL string `json:"token_url,omitempty"`
	// ClientIDEnv is the variable that holds the client id. Default: dynamic registration (RFC 7591).
	ClientIDEnv string `json:"client_id_env,omitempty"`
	// ClientSecretEnv is the variable that holds the client secret. Default: a public client.
	ClientSecretEnv string `json:"client_secret_env,omitempty"`
	// Scopes are asked for. Example: [read].
	Scopes []string `json:"scopes,omitempty"`
	// RedirectPort is the loopback port that waits for the browser. Default: a free one.
	RedirectPort int `json:"redirect_port,omitempty" check:"min=0,max=65535"`
}

// TLS sets the certificates of a connection; paths are relative to the manifest.
type TLS struct {
	// CAFile is a PEM file of authorities that are trusted besides the system's. Example: tls/ca.pem.
	CAFile string `json:"ca_file,omitempty" check:"path"`
	// CertFile is a PEM file with the client's certificate. Example: tls/client.pem.
	CertFile string `json:"cert_file,omitempty" check:"path"`
	// KeyFile is a PEM file with the client's key. Example: tls/client.key.
	KeyFile string `json:"key_file,omitempty" check:"path"`
}

// braced finds {name} in a URL, which is how OpenAPI (3.1, section 4.8.8.1) and many routers write what is
// {{.name}} here. ${name} and {{.name}} are not meant.
var braced = regexp.MustCompile(`(^|[^{$])\{([A-Za-z_][A-Za-z0-9_]*)\}`)

func (h *HTTPSpec) rules(path string) (fs []Violation) {
	add := func(p, expected, got, msg string) {
		fs = append(fs, Violation{Path: p, Expected: expected, Got: got, Message: msg})
	}
	if a := h.Auth; a != nil {
		if a.OAuth2AuthorizationCode != nil {
			add(path+"/auth/oauth2_authorization_code", "another kind of auth", "oauth2_authorization_code", "an HTTP tool cannot sign in through a browser: use bearer_env, basic or oauth2_client_credentials")
		}
		if o := a.OAuth2ClientCredentials; o != nil && o.Issuer != "" {
			add(path+"/auth/oauth2_client_credentials/issuer", "token_url", "issuer", "an HTTP tool does not discover its authorization server: use token_url")
		}
		if o := a.OAuth2ClientCredentials; o != nil && o.TokenURL == "" {
			add(path+"/auth/oauth2_client_credentials/token_url", "a URL", "nothing", `required field "token_url" is missing`)
		}
	}
	if r := h.Retry; r != nil {
		for i, code := range r.RetryOn {
			if code < 100 || code > 599 {
				add(Pointer(path+"/retry/retry_on", fmt.Sprint(i)), "an HTTP status code", fmt.Sprint(code), fmt.Sprintf("%d is not an HTTP status code: expected 100 to 599", code))
			}
		}
	}
	for _, m := range braced.FindAllStringSubmatch(h.URL, -1) {
		fs = append(fs, Violation{Severity: SeverityWarning, Path: path + "/url", Expected: "{{." + m[2] + "}}", Got: "{" + m[2] + "}",
			Message: fmt.Sprintf("{%s} is sent unchanged: write {{.%s}} for the argument %q", m[2], m[2], m[2])})
	}
	return fs
}

func urlViolations(path string, texts map[string]string) []Violation {
	u := texts[""]
	if strings.HasPrefix(u, "http://") || strings.HasPrefix(u, "https://") || strings.HasPrefix(u, "${") {
		return nil
	}
	return []Violation{{Path: path, Expected: "an http or https URL", Got: quote(u), Message: fmt.Sprintf("%q is not an http or https URL", u)}}
}

// bareVariable finds $VAR, which a shell reads and a manifest does not. Names in other letters are left
// alone: $filter and $top are parameters of OData.
var bareVariable = regexp.MustCompile(`(?:^|[^$])\$([A-Z_][A-Z0-9_]+)`)

// bareVariables warns of $VAR in texts that are read for ${VAR}. The keys are members of path; "" is path itself.
func bareVariables(path string, texts map[string]string) (fs []Violation) {
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		at := path
		if key != "" {
			at = Pointer(path, key)
		}
		for _, m := range bareVariable.FindAllStringSubmatch(texts[key], -1) {
			fs = append(fs, Violation{Severity: SeverityWarning, Path: at, Expected: "${" + m[1] + "}", Got: "$" + m[1],
				Message: fmt.Sprintf("$%s is not read from the environment: write ${%s}", m[1], m[1])})
		}
	}
	return fs
}

func (a *Auth) rules(path string) []Violation {
	var set []string
	for name, on := range map[string]bool{
		"bearer_env": a.BearerEnv != "", "basic": a.Basic != nil,
		"oauth2_client_credentials": a.OAuth2ClientCredentials != nil, "oauth2_authorization_code": a.OAuth2AuthorizationCode != nil,
	} {
		if on {
			set = append(set, name)
		}
	}
	if len(set) == 1 {
		return nil
	}
	const want = "one of bearer_env, basic, oauth2_client_credentials, oauth2_authorization_code"
	return []Violation{{Path: path, Expected: want, Got: fmt.Sprintf("%d of them", len(set)), Message: "auth needs exactly " + want}}
}

func (t *TLS) rules(path string) []Violation {
	if (t.CertFile == "") == (t.KeyFile == "") {
		return nil
	}
	return []Violation{{Path: path, Expected: "cert_file and key_file", Got: "one of them", Message: "a client certificate needs both cert_file and key_file"}}
}
