package server

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// isStateless reports whether a request came over HTTP without a session. See [HTTPOptions].Stateless; those of
// 2026-07-28 never have one.
func isStateless(req sdk.Request) bool {
	ss, ok := req.GetSession().(*sdk.ServerSession)
	return ok && req.GetExtra() != nil && ss.ID() == ""
}

// needsSession reports whether only a session of 2025-11-25 or older has a use for a request: it is not among
// the capabilities that initialize names without one.
func needsSession(req sdk.Request) bool {
	switch req.(type) {
	case *sdk.SubscribeRequest, *sdk.UnsubscribeRequest, *sdk.ServerRequest[*sdk.SetLoggingLevelParams], *sdk.RootsListChangedRequest:
		return true
	}
	return false
}
