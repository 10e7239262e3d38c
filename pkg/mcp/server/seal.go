package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"

	"toolctl.dev/toolctl/internal/seal"
	"toolctl.dev/toolctl/pkg/replica"
)

// seals creates and opens the requestState of MCP 2026-07-28 (basic/utilities, multi round-trip requests).
// A client can neither read nor change a state. It is valid for one principal and one request while its
// call is suspended. Without replicas the key lives as long as the process, like the calls. With replicas
// the state identifies the replica that holds the call.
type seals struct {
	keys    *seal.Keys      // without replicas
	replica *replica.Member // nil without replicas
}

// sealed is the content of a state.
type sealed struct {
	Call  string // the ID of the suspended call
	Round int
	Bound []byte // see binding
}

const (
	// maxState is the maximum length of a state.
	maxState = 200
	// callIDSize is the length of the IDs of suspended calls, which crypto/rand generates.
	callIDSize = 26
	purpose    = "call"
)

func newSeals(r *replica.Member) seals { return seals{seal.Random(), r} }

// binding identifies the request of a principal for which a state is valid, independent of the formatting
// of its arguments.
func binding(r *request) []byte {
	h := sha256.New()
	name, _ := r.Params.Text("name")
	uri, _ := r.Params.Text("uri")
	_ = json.NewEncoder(h).Encode([]string{r.principal, r.toolset, r.Method, name, uri}) // strings
	raw := r.Params.Get("arguments")
	var doc any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if len(raw) > 0 && d.Decode(&doc) == nil {
		raw, _ = json.Marshal(doc) // with sorted keys
	}
	if string(raw) == "null" || len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	h.Write(raw)
	return h.Sum(nil)
}

func (s seals) seal(what sealed) string {
	plain := binary.AppendUvarint(append([]byte(what.Call), what.Bound...), uint64(what.Round)) //nolint:gosec // rounds are positive
	if s.replica != nil {
		return s.replica.SealCall(plain)
	}
	return s.keys.Seal(purpose, plain)
}

var errState = errors.New("requestState: it was altered, or belongs to another request or principal: send the request again without it")

// open returns the content of a state. The error does not reveal which check failed.
func (s seals) open(state string, bound []byte) (what sealed, err error) {
	if len(state) > maxState {
		return what, errState
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
		return what, errState
	}
	round, _ := binary.Uvarint(plain[fixed:])
	return sealed{string(plain[:callIDSize]), int(round), bound}, nil //nolint:gosec // it was sealed here
}
