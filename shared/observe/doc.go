// Package observe exports the gateway's activity to existing tools: each request as a
// span, and sums as metrics, by the OpenTelemetry protocol with the gen_ai names, to the
// destinations of the organization and of the workspace. The worker that ingests usage
// records creates the exports from them, so that no request waits for a collector.
// Exports that cannot be sent are counted and dropped.
package observe
