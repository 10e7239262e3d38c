package server

import (
	"mime"
	"net/http"
	"strings"

	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// acceptable reports whether a client accepts the content types of our responses: JSON and an event stream
// for POST, an event stream for GET (MCP specification, transports, streamable HTTP, sending messages). The
// specification gives no status for a refusal, so RFC 9110, section 15.5.7, applies.
func acceptable(r *http.Request) bool {
	takes := func(kind, wild string) bool {
		for _, header := range r.Header.Values("Accept") {
			for one := range strings.SplitSeq(header, ",") {
				got, params, err := mime.ParseMediaType(one)
				if err == nil && params["q"] != "0" && (got == kind || got == wild || got == "*/*") {
					return true
				}
			}
		}
		return false
	}
	stream := takes("text/event-stream", "text/*")
	switch r.Method {
	case http.MethodPost:
		return stream && takes("application/json", "application/*")
	case http.MethodGet:
		return stream || wire.IsModern(r.Header.Get(wire.HeaderVersion)) // modern versions have no GET
	}
	return true
}

// unacceptable responds with the content types that a client must accept.
func unacceptable(w http.ResponseWriter, r *http.Request) {
	text := "the Accept header must name application/json and text/event-stream"
	if r.Method == http.MethodGet {
		text = "the Accept header must name text/event-stream"
	}
	http.Error(w, text, http.StatusNotAcceptable)
}
