package server_test

import (
	"crypto/sha256"
	"fmt"
	"log"
	"strings"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

func ExampleReadTokens() {
	old, next := sha256.Sum256([]byte("the old token")), sha256.Sum256([]byte("the new one"))
	tokens, err := server.ReadTokens(strings.NewReader(fmt.Sprintf("# while it is replaced\nann:%x\nann:%x\n", old, next)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tokens.Count())

	_, err = server.ReadTokens(strings.NewReader("ann:the token itself\n"))
	fmt.Println(err)
	// Output:
	// 2
	// line 1: the hash: expected the SHA-256 of the token as 64 hexadecimal digits, got 16 characters
}
