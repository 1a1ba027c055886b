package tenant

import (
	"encoding/json"
	"fmt"

	"gateway/shared/resource"
)

// KindOrganisation is the resource kind of the organisation itself: one row,
// whose id is the organisation's.
const KindOrganisation resource.Kind = "ORGANISATION"

// Request logging modes.
const (
	LogFull    = "full"    // metrics and bodies
	LogMetrics = "metrics" // metrics only
)

// Organisation is the stored form of an organisation: the body of its resource.
type Organisation struct {
	Settings Settings `json:"settings"`
}

// Settings that requests depend on.
type Settings struct {
	// BlockInlineConfig refuses whatever a request brings instead of naming
	// something saved. On for organisations made by the API.
	BlockInlineConfig bool `json:"block_inline_config"`
	// RequestLogging is LogFull (also when empty) or LogMetrics.
	RequestLogging string `json:"request_logging,omitempty"`
	// EnforceDebug, when not nil, overrides the x-gateway-debug header.
	EnforceDebug *bool `json:"enforce_debug,omitempty"`
	// Unpriced is "refuse" (also when empty) or "allow": what happens to a
	// model without a price while a cost budget is in force.
	Unpriced string `json:"unpriced,omitempty"`
}

// DecodeOrganisation reads an organisation resource for requests.
func DecodeOrganisation(rec resource.Record) (*Organisation, error) {
	var o Organisation
	if err := json.Unmarshal(rec.Body, &o); err != nil {
		return nil, fmt.Errorf("tenant: organisation %s: %w", rec.ID, err)
	}
	return &o, nil
}
