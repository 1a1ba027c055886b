// Package tenant holds what owns everything else: organisations, workspaces,
// their settings and the effective value of a setting for a request.
package tenant
