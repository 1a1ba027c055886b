// Package sso configures how users of an organization sign in: its identity providers, its
// verified email domains, pending sign-ins, and the admission of users on their first sign-in.
package sso
