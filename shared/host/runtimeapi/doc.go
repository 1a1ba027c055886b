// Package runtimeapi is Lambda's Runtime API on loopback: it delivers events to a
// function that polls for them and collects its responses, plain or streamed. Environment
// runs a real function binary against it. The local -lambda mode and the tests use it;
// nothing deployed does.
package runtimeapi
