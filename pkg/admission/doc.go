// Package admission applies one set of limits to all requests of a server, whatever their entrance: rates,
// quotas, and limits for the size of bodies, memory and results.
//
// A server lists its entrances as [Route] values. [Admission.Routes] combines them into one handler, so
// that no entrance bypasses the limits. A route identifies the sender of a request before its body is read.
// The request then counts toward the rate of its caller and takes a place of a quota. Its body is read
// within a size and time limit, and it gets memory for decoding. Tool calls take their places from
// [Admission.Calls].
//
// A principal may use only a part of each quota, so that it cannot starve others. Senders without a
// verified name share a few places, counted by address.
package admission
