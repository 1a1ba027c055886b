// Package metric names the metrics that processes tell CloudWatch and that alarms
// look at.
package metric

// Namespace is that of the metrics, in CloudWatch. Their one dimension is
// Installation.
const Namespace = "Gateway"

// Names of the metrics.
const (
	Requests      = "Requests"         // answered by this process, of known callers
	Failures      = "Failures"         // of these, 5xx that are the gateway's own doing
	StoreFailures = "StoreFailures"    // a store, queue or key service did not answer; what counts money refuses then
	AroundEdge    = "AroundEdge"       // requests that did not come through the edge
	LoggedErrors  = "LoggedErrors"     // lines of level ERROR
	Dropped       = "TelemetryDropped" // records that were not reported to a destination, once for each destination and signal
	GatewayTime   = "GatewayTime"      // milliseconds of a request that are not the provider's
)

// Names of what is told by provider and model, besides Requests.
const (
	Errors       = "Errors"       // answered with 400 or more, whoever failed
	Latency      = "Latency"      // milliseconds from a request's arrival to its last byte
	InputTokens  = "InputTokens"  //
	OutputTokens = "OutputTokens" //
	Cost         = "Cost"         // USD, as booked
)

// The dimensions of these besides Installation.
const (
	Provider = "Provider"
	Model    = "Model"
)

// Other stands for a model that has no price, as callers may name models as they
// like, and for the providers and models that are too many.
const Other = "other"
