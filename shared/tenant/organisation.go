package tenant

import (
	"encoding/json"
	"fmt"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// KindOrganisation is the resource kind of the organisation itself: one row with the
// organisation's id.
const KindOrganisation resource.Kind = "ORGANISATION"

// Request logging modes.
const (
	LogFull    = "full"    // metrics and bodies
	LogMetrics = "metrics" // metrics only
)

// Handling of models without a price.
const (
	UnpricedRefuse = "refuse"
	UnpricedAllow  = "allow"
)

// Handling of requests with a cost that cannot be limited in advance.
const (
	UnboundedRefuse = "refuse"
	UnboundedAllow  = "allow"
)

// Organisation is the stored form of an organisation: the body of its resource.
type Organisation struct {
	Settings Settings `json:"settings"`
	// Ids of guardrails for the requests of every workspace that is not excluded; see
	// Effective.Guardrails.
	InputGuardrails  []string `json:"input_guardrails,omitempty" max:"100"`
	OutputGuardrails []string `json:"output_guardrails,omitempty" max:"100"`

	prices *pricing.Overrides // from the settings
}

// Prices returns the organisation's prices and multipliers, or nil. They are shared and must
// not be changed.
func (o *Organisation) Prices() *pricing.Overrides { return o.prices }

// CacheAge returns how long a cached response may be used for a config with the requested time;
// zero requests the organization's time. A result of zero means the cache's default.
func (s *Settings) CacheAge(asked time.Duration) time.Duration {
	own := time.Duration(s.CacheMaxAge) * time.Second
	if own == 0 || asked > 0 && asked < own {
		return asked
	}
	return own
}

// DecodeOrganisation decodes an organisation resource for requests.
func DecodeOrganisation(rec resource.Record) (*Organisation, error) {
	var o Organisation
	if err := json.Unmarshal(rec.Body, &o); err != nil {
		return nil, fmt.Errorf("tenant: organisation %s: %w", rec.ID, err)
	}
	var bad []fault.Detail
	if o.prices, bad = pricing.ParseOverrides(o.Settings.ModelPrices, o.Settings.PriceMultiplier); len(bad) > 0 {
		return nil, fmt.Errorf("tenant: prices of organisation %s: %s %s", rec.ID, bad[0].Field, bad[0].Message)
	}
	return &o, nil
}

// AmendOrganisation changes the record of an organisation within a transaction. If nothing is
// stored yet, it starts from the defaults.
func AmendOrganisation(tx *resource.Tx, sc store.Scope, actor string, f func(o *Organisation) error) error {
	rec, ok, err := tx.Get(sc.Organisation(), KindOrganisation, sc.Org)
	if err != nil {
		return err
	}
	o := *defaultOrganisation
	if ok {
		stored, err := DecodeOrganisation(rec)
		if err != nil {
			return err
		}
		o = *stored
	} else {
		rec = resource.Record{Scope: sc.Organisation(), Kind: KindOrganisation, ID: sc.Org, Name: sc.Org, Status: StatusActive, CreatedBy: actor}
	}
	if err := f(&o); err != nil {
		return err
	}
	if rec.Body, err = json.Marshal(&o); err != nil {
		return fmt.Errorf("tenant: encode organisation %s: %w", sc.Org, err)
	}
	if rec.UpdatedBy = actor; !ok {
		return tx.Create(&rec)
	}
	return tx.Update(&rec)
}
