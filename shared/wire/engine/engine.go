//go:build !core

// Package engine states whether a build has this project's own HTTP server and transport.
// Without them, which the build tag core omits, net/http serves and calls.
package engine

// Linked is a constant, so that the linker omits what is not used.
const Linked = true
