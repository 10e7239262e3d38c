// Package admission holds what a server is asked for to one set of limits, whichever entrance it comes by: who may
// come in, how often and with how much.
//
// A server lists its entrances as [Route] values. [Admission.Routes] makes one handler of them, which is all that the server
// serves, so no entrance is beside the limits. A route says who sends a request before anything of its body is read; the
// request then counts in the rate of its caller, takes its place among those that are served at once, is read within
// its size and time, and has memory for what it decodes. Whoever makes calls of tools takes their places of [Admission.Calls].
//
// A principal may use a part of each quota, so that one who takes too much hurts nobody else. Those who have not shown
// who they are have few places to themselves, by their addresses.
package admission
