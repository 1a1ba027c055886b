// Package tenant has the owners of everything else: organisations and workspaces, their
// settings, and the effective value of a setting for a request.
package tenant
