package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"toolctl.dev/toolctl/internal/clip"
)

// farNumber returns the first number of a JSON text that is beyond a double. The SDK reads
// the parameters of a request of 2026-07-28 with doubles, and of one that has such a number
// it says that its name is missing.
func farNumber(body []byte) string {
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case c >= '0' && c <= '9':
			from := i
			for i+1 < len(body) && (body[i+1] >= '0' && body[i+1] <= '9' || body[i+1] == '.' || body[i+1] == 'e' || body[i+1] == 'E' || body[i+1] == '+' || body[i+1] == '-') {
				i++
			}
			const short = 4 // up to 9e99
			if n := string(body[from : i+1]); len(n) > short {
				if _, err := strconv.ParseFloat(n, 64); err != nil {
					return n
				}
			}
		}
	}
	return ""
}

// refuseFar answers a request with such a number.
func refuseFar(w http.ResponseWriter, id json.RawMessage, number string) {
	if len(id) == 0 || !json.Valid(id) {
		id = json.RawMessage("null")
	}
	c := toolCall{id: id}
	writeAnswer(w, http.StatusBadRequest, c.failure(jsonrpc.CodeInvalidParams, fmt.Sprintf("the number %s is beyond the range of a double: at most 1.8e308; send it as a string", clip.Bytes(number, 100))))
}
