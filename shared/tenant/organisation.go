package tenant

import (
	"encoding/json"
	"fmt"
	"time"

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

// What happens to models without a price.
const (
	UnpricedRefuse = "refuse"
	UnpricedAllow  = "allow"
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
	RequestLogging string `json:"request_logging,omitempty" enum:"full,metrics"`
	// EnforceDebug, when not nil, overrides the x-gateway-debug header.
	EnforceDebug *bool `json:"enforce_debug,omitempty"`
	// Unpriced is UnpricedRefuse (also when empty) or UnpricedAllow: what happens
	// to a model without a price while a cost budget is in force.
	Unpriced string `json:"unpriced,omitempty" enum:"refuse,allow"`
	// CacheMaxAge is how many seconds answers of the cache are used where a config
	// does not say, and the most where it does; 0: the standard, and no bound but
	// that of configs.
	CacheMaxAge int64 `json:"cache_max_age,omitempty" min:"60" max:"25923000"`
}

// CacheAge is how long an answer of the cache may be used for a config that asks
// for asked; 0 asks for the organisation's own. The answer 0 is the standard of
// the cache.
func (s *Settings) CacheAge(asked time.Duration) time.Duration {
	own := time.Duration(s.CacheMaxAge) * time.Second
	if own == 0 || asked > 0 && asked < own {
		return asked
	}
	return own
}

// DecodeOrganisation reads an organisation resource for requests.
func DecodeOrganisation(rec resource.Record) (*Organisation, error) {
	var o Organisation
	if err := json.Unmarshal(rec.Body, &o); err != nil {
		return nil, fmt.Errorf("tenant: organisation %s: %w", rec.ID, err)
	}
	return &o, nil
}
