// Package observe tells the tools that teams already have what the gateway did: each
// request as a span, and sums as metrics, by the OpenTelemetry protocol with the
// gen_ai names, to the destinations of the organisation and of the workspace. It is
// made of usage records by the worker that keeps them, so that no request waits for
// a collector. What cannot be sent is counted and left.
package observe
