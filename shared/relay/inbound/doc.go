// Package inbound is the second stage of the walk: the body of an admitted request,
// or the part of it that is held, and what it asks for. Later stages read it and do
// not change it.
package inbound
