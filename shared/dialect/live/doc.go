// Package live defines which parts of forwarded sessions are read, message by message:
// those relevant for billing and for guardrails. Sessions are metered by the provider's
// reports. Each wire format is a package below.
package live
