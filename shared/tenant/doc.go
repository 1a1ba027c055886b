// Package tenant contains the owners of all other resources: organizations and workspaces,
// their settings, and the effective value of a setting for a request.
package tenant
