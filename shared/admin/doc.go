// Package admin is the engine of the administration API. A family of routes is
// a description, a Go value; README.md shows a whole one, which runs as the
// example of this package.
//
// A call goes: route, caller, scope, body (strict JSON), place, role, fields,
// Do, answer. Refusals of a known caller are one answer (Denied), so that they
// do not tell what exists.
package admin
