// Package remote runs the checks that call a host which the customer names, through the
// guarded client that each is given.
package remote
