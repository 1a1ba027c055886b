// Package declare brings a gateway to a declared state over the public administration API:
// it reads the live state, compares it with a document, plans what to create, change and
// delete, and carries the plan out. Export writes the live state as such a document.
//
// The kinds of resources are the rows of a table (kinds.go). Secrets never leave the
// gateway: a document names them as ${NAME}, and a live secret is known by its mask alone.
// The package is part of the command line and must not be linked into a server.
package declare
