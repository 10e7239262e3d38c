package replica

import (
	"maps"
	"slices"
)

// A sealed name says which replica owns its object. Names of one kind are not valid for another.
const (
	kindSession = "session"
	kindCall    = "call"
)

// SealSession returns the ID of a session of this replica for clients.
func (m *Member) SealSession(session []byte) string { return m.name(kindSession, session) }

// SealCall returns the name of a call of this replica for clients.
func (m *Member) SealCall(call []byte) string { return m.name(kindCall, call) }

func (m *Member) name(kind string, what []byte) string {
	return m.opts.Keys.Seal(kind, append([]byte(m.id), what...))
}

// OpenSession returns the replica that owns a session, and the session's name there. It returns false if no replica
// created the ID.
func (m *Member) OpenSession(text string) (owner string, session []byte, ok bool) {
	return m.open(kindSession, text)
}

// OpenCall is OpenSession for a call.
func (m *Member) OpenCall(text string) (owner string, call []byte, ok bool) {
	return m.open(kindCall, text)
}

// maxName is the maximum length of a name.
const maxName = 200

func (m *Member) open(kind, text string) (owner string, what []byte, ok bool) {
	if len(text) > maxName {
		return "", nil, false
	}
	plain, ok := m.opts.Keys.Open(kind, text)
	if !ok || len(plain) < idSize {
		return "", nil, false
	}
	return string(plain[:idSize]), plain[idSize:], true
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
