// Package lock keeps what MCP servers said of their tools when a person last
// looked, so that a server cannot change a tool behind that person's back.
//
// A [File] holds, for each server, its name and version, the protocol version,
// and for each tool the SHA-256 hash of every part of its definition. Title,
// description and annotations are kept as text too, because they are what a
// person reviews; schemas are kept as hashes and as the list of their arguments.
//
//	old, err := lock.Read(path)
//	...
//	for _, d := range lock.Diff(old, lock.File{Servers: now}) {
//		fmt.Println(d) // default/files: tool "read_file": description changed
//	}
//
// # Hashes
//
// A hash is taken of the canonical form of the JSON value (RFC 8785), so the
// order of keys and the spelling of numbers and escapes do not matter, and every
// other character does. A part that the server does not give has no hash.
//
// # Hand edits
//
// [Read] compares each text with its hash and refuses a file in which they
// differ: who changes the text of a lock without its hash has reviewed
// something that no server said.
package lock
