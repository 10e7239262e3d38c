package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// ModernVersion is the first version of MCP without sessions.
const ModernVersion = "2026-07-28"

// Versions are the supported versions of MCP, newest first.
var Versions = []string{ModernVersion, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// IsModern reports whether a version of MCP has no sessions.
func IsModern(version string) bool { return version >= ModernVersion }

// Keys of _meta in MCP 2026-07-28.
const (
	MetaPrefix       = "io.modelcontextprotocol/"
	MetaVersion      = MetaPrefix + "protocolVersion"
	MetaClient       = MetaPrefix + "clientInfo"
	MetaCapabilities = MetaPrefix + "clientCapabilities"
	MetaLogLevel     = MetaPrefix + "logLevel"
	MetaServer       = MetaPrefix + "serverInfo"
	MetaSubscription = MetaPrefix + "subscriptionId"
)

// Headers of the streamable HTTP transport.
const (
	HeaderSession = "Mcp-Session-Id"
	HeaderVersion = "Mcp-Protocol-Version"
	HeaderMethod  = "Mcp-Method"
	HeaderName    = "Mcp-Name"
	HeaderEvent   = "Last-Event-Id"
)

// Requests that a server sends to its client, and notifications of both sides.
const (
	MethodElicit    = "elicitation/create"
	MethodSample    = "sampling/createMessage"
	MethodRoots     = "roots/list"
	MethodCancelled = "notifications/cancelled"
)

// Error codes of MCP.
const (
	CodeNeedsCapability = -32021 // the client lacks a capability that the request needs (2026-07-28, basic)
	CodeNeedsURL        = -32042 // a person must visit a URL first (client/elicitation)
)

// Levels are the log levels of MCP (RFC 5424, section 6.2.1), the least severe first.
var Levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// SessionName returns the name of a session in logs, spans and the audit. The ID of a session is a secret, so the name is
// a hash of the ID.
func SessionName(id string) string { return "mcp-" + Hash(id) }

// Hash returns a name for a secret, or for several texts together.
func Hash(parts ...string) string {
	text := make([]byte, 0, 128) // enough for most, on the stack
	for _, p := range parts {
		text = append(append(strconv.AppendInt(text, int64(len(p)), 10), ':'), p...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}
