// Package admission holds what a server is asked for to its limits: how many calls there are at once, how
// often a principal asks, and which part of each limit one principal may use.
package admission
