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
	// Guardrails, by id, of the requests of every workspace that is not excluded.
	InputGuardrails  []string `json:"input_guardrails,omitempty" max:"100"`
	OutputGuardrails []string `json:"output_guardrails,omitempty" max:"100"`
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
