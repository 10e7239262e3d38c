// Package replica makes several processes on one store one server: each has a lease in the store
// that says where the others reach it, and a request of a session or a call that another has is
// forwarded to that one.
//
// What clients get to name a session or a call is sealed with a key that the replicas share, and says
// which replica has it. A request that is forwarded goes straight to that replica, with
// a sealed credential in the place of the client's token: it names the principal, and is good for
// this one request, for some seconds, once. A forwarded request is answered where it arrives and
// never forwarded again.
package replica
