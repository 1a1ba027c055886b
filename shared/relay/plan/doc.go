// Package plan is the third stage of the walk: the way of a request whose body is
// read, which is the compiled targets of its config and where their walk stands, or
// that the gateway answers itself. Later stages ask it for the next target and tell
// it what came of the last one.
package plan
