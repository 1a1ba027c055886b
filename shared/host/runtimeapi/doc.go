// Package runtimeapi is Lambda's Runtime API on loopback: it hands events to a
// function that polls for them and collects what the function answers, plain or
// streamed. Environment runs a real function binary against it. The laptop's
// -lambda mode and the tests use it; nothing that is deployed does.
package runtimeapi
