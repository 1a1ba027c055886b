// Package notices determines the recipients of notices: the webhooks of an organization and its
// workspaces, and the users that an event concerns.
package notices
