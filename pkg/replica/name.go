package replica

import (
	"maps"
	"slices"
)

// A name is sealed and says which replica has what it names. Names of one kind are not taken
// for those of another.
const (
	kindSession = "session"
	kindCall    = "call"
)

// SealSession makes the id of a session of this replica, and SealCall the state of a call.
func (m *Member) SealSession(session []byte) string { return m.name(kindSession, session) }

// SealCall makes what names a call of this replica to a client.
func (m *Member) SealCall(call []byte) string { return m.name(kindCall, call) }

func (m *Member) name(kind string, what []byte) string {
	return m.opts.Keys.Seal(kind, append([]byte(m.id), what...))
}

// OpenSession returns which replica has a session, and its name there; false when no replica made it.
func (m *Member) OpenSession(text string) (owner string, session []byte, ok bool) {
	return m.open(kindSession, text)
}

// OpenCall is OpenSession for a call.
func (m *Member) OpenCall(text string) (owner string, call []byte, ok bool) {
	return m.open(kindCall, text)
}

// maxName is the longest name that is looked at.
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
