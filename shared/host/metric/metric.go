// Package metric names the metrics that processes send to CloudWatch and that alarms use.
package metric

// Namespace is the metrics' namespace in CloudWatch. Their one dimension is Installation.
const Namespace = "Gateway"

// Names of the metrics.
const (
	Requests      = "Requests"         // served by this process, of authenticated callers
	Failures      = "Failures"         // of these, 5xx caused by the gateway
	StoreFailures = "StoreFailures"    // a store, queue or key service was unavailable; accounting then rejects requests
	BypassedEdge  = "AroundEdge"       // requests that did not come through the edge
	LoggedErrors  = "LoggedErrors"     // lines of level ERROR
	Dropped       = "TelemetryDropped" // records not reported to a destination, counted per destination and signal
	GatewayTime   = "GatewayTime"      // milliseconds of a request that are not the provider's
)

// Metrics per provider and model, besides Requests.
const (
	Errors       = "Errors"       // status of 400 or more, regardless of the cause
	Latency      = "Latency"      // milliseconds from a request's arrival to its last byte
	InputTokens  = "InputTokens"  //
	OutputTokens = "OutputTokens" //
	Cost         = "Cost"         // USD, as recorded
)

// The dimensions of these besides Installation.
const (
	Provider = "Provider"
	Model    = "Model"
)

// Other replaces a model without a price, as callers may invent model names, and the
// providers and models beyond the limit.
const Other = "other"
