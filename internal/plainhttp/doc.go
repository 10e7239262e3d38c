// Package plainhttp sends small requests to http:// addresses over HTTP/1.1 on the
// goroutine of their caller, without any other.
//
// [http.Transport] has two goroutines for each connection, and a request goes through
// both, there and back. Where a call takes a fraction of a millisecond, to wake them is
// most of what it costs. What a request and a response look like is net/http's own
// ([http.Request.Write], [http.ReadResponse]); this package keeps the connections.
// Requests with TLS, with more than 64 KiB, or on another system than Linux, go through an http.Transport as usual.
package plainhttp
