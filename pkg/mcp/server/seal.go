package server

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"toolctl.dev/toolctl/internal/seal"
	"toolctl.dev/toolctl/pkg/replica"
)

// seals makes and opens the requestState of MCP 2026-07-28 (basic/utilities, multi
// round-trip requests). A client can neither read nor alter it, and it is good for one
// principal, one request and a time. Without replicas the key lives as long as the process, as the
// calls that it names do; with them the state says which replica has the call.
type seals struct {
	keys    *seal.Keys      // without replicas
	replica *replica.Member // nil without
}

// sealed is what a state says.
type sealed struct {
	Call    string // callIDSize bytes
	Round   int
	Expires time.Time
}

const (
	// maxState is the longest state that is looked at.
	maxState = 200
	// callIDSize is how long the ids of held calls are.
	callIDSize = 26
	purpose    = "call"
)

func newSeals(r *replica.Member) seals { return seals{seal.Random(), r} }

// newCallID makes the id of a held call.
func newCallID() string { return rand.Text()[:callIDSize] }

// binding is what a state is good for: a principal's request, however its arguments
// are written.
func binding(r *request) []byte {
	h := sha256.New()
	name, _ := r.Params.Text("name")
	uri, _ := r.Params.Text("uri")
	_ = json.NewEncoder(h).Encode([]string{r.principal, r.Method, name, uri}) // strings
	raw := r.Params.Get("arguments")
	var doc any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if len(raw) > 0 && d.Decode(&doc) == nil {
		raw, _ = json.Marshal(doc) // in the order of the keys
	}
	if string(raw) == "null" || len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	h.Write(raw)
	return h.Sum(nil)
}

func (s seals) seal(what sealed, bound []byte) string {
	plain := append([]byte(what.Call), bound...)
	plain = binary.AppendVarint(plain, what.Expires.UnixNano())
	plain = binary.AppendUvarint(plain, uint64(what.Round))
	if s.replica != nil {
		return s.replica.SealCall(plain)
	}
	return s.keys.Seal(purpose, plain)
}

var errState = errors.New("requestState: it was altered, is of another request or principal, or has expired: send the request again without it")

// open returns what a state says. It does not say which of its rules a state broke.
func (s seals) open(state string, bound []byte, now time.Time) (sealed, error) {
	if len(state) > maxState {
		return sealed{}, errState
	}
	var plain []byte
	var ok bool
	if s.replica != nil {
		_, plain, ok = s.replica.OpenCall(state)
	} else {
		plain, ok = s.keys.Open(purpose, state)
	}
	const fixed = callIDSize + sha256.Size
	if !ok || len(plain) < fixed || !bytes.Equal(plain[callIDSize:fixed], bound) {
		return sealed{}, errState
	}
	rest := plain[fixed:]
	expires, n := binary.Varint(rest)
	if n <= 0 {
		return sealed{}, errState
	}
	round, m := binary.Uvarint(rest[n:])
	if m <= 0 || !now.Before(time.Unix(0, expires)) {
		return sealed{}, errState
	}
	return sealed{string(plain[:callIDSize]), int(round), time.Unix(0, expires)}, nil
}
