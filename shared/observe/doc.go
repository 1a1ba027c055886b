// Package observe reports to the tools that teams already have what the gateway did: each
// request as a span, and sums as metrics, by the OpenTelemetry protocol with the gen_ai
// names, to the destinations of the organisation and of the workspace. The worker that
// keeps usage records makes the reports from them, so that no request waits for a
// collector. Reports that cannot be sent are counted and dropped.
package observe
