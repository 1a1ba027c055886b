// Package sso is how an organisation lets its people sign in: its identity providers, the
// mail domains that it has proved to own, sign-ins that are in progress, and what happens
// when a person comes for the first time.
package sso
