// Package admin is the engine of the administration API. A family of routes is a description, a
// Go value; README.md shows a complete one, which runs as the example of this package.
//
// A call passes: route, caller, scope, body (strict JSON), placement, role, fields, Do,
// response. Authenticated callers always get the same error (Denied), so that errors do not
// reveal what exists.
package admin
