// Package admission applies one set of limits to all requests of a server, whatever their entrance: rates, quotas, and
// the size of bodies, memory and results.
//
// A server lists its entrances as [Route] values. [Admission.Routes] makes them one handler, so that no entrance bypasses
// the limits. A route identifies the sender of a request before its body is read. The request then counts in the rate of
// its caller, takes a place of a quota, is read within its size and time, and gets memory for decoding. Calls of tools take
// their places from [Admission.Calls].
//
// A principal may use only a part of each quota, so that it cannot starve others. Senders without a verified name share a
// few places, by their addresses.
package admission
