// Package sso is how an organisation lets its people in: its identity providers, the
// domains of addresses that it has shown to be its own, sign-ins that are under way,
// and what becomes of somebody who comes for the first time.
package sso
