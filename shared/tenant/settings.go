package tenant

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
)

// Settings of an organisation. If the organisation has opened a setting's category, a
// workspace may have its own value; see LoadSettings.
type Settings struct {
	// BlockInlineConfig rejects everything that a request brings instead of naming something
	// saved. It is on for organisations that are made by the API.
	BlockInlineConfig bool `json:"block_inline_config"`
	// RequestLogging is LogFull (also when empty) or LogMetrics.
	RequestLogging string `json:"request_logging,omitempty" enum:"full,metrics"`
	// EnforceDebug, when not nil, overrides the x-gateway-debug header.
	EnforceDebug *bool `json:"enforce_debug,omitempty"`
	// LogDays is for how many days logs, and the counts made from them, are kept; 0: as long
	// as the installation keeps them.
	LogDays int64 `json:"log_retention_days,omitempty" min:"1" max:"36500"`
	// Unpriced is UnpricedRefuse (also when empty) or UnpricedAllow: what is done about a
	// model without a price while a cost budget is in force.
	Unpriced string `json:"unpriced,omitempty" enum:"refuse,allow"`
	// Unbounded is UnboundedRefuse (also when empty) or UnboundedAllow: what is done, while a
	// budget is in force, about a request whose input is stored at a provider or fetched by it
	// and whose model's context window is unknown, and about a batch whose rows cannot be read.
	Unbounded string `json:"unbounded,omitempty" enum:"refuse,allow"`
	// ModelPrices are the organisation's own prices, {"provider/model":
	// pricing_config}, and PriceMultiplier its multipliers; see pricing.Overrides.
	ModelPrices     json.RawMessage `json:"model_prices,omitempty"`
	PriceMultiplier json.RawMessage `json:"price_multiplier,omitempty"`
	// CacheMaxAge is how many seconds answers of the cache are used if a config does not say,
	// and the most if it does; 0: the standard, and only the bound of configs.
	CacheMaxAge int64 `json:"cache_max_age,omitempty" min:"60" max:"25923000"`
	// AllowedModels are the models that requests may call; empty: all. See AllowsModel.
	AllowedModels []string `json:"allowed_models,omitempty" max:"1000" each:"min=1 max=255"`

	// MaxSessionTTL is how old a session may become, in seconds; 0: no bound separate.
	MaxSessionTTL int64 `json:"max_session_ttl,omitempty" min:"900" max:"31536000"`
	// MaxIdleTime is how long a session lasts without activity, in seconds; 0: the standard.
	MaxIdleTime int64 `json:"max_idle_time,omitempty" min:"300" max:"31536000"`
	// JWKSURL and JWKS are the keys by which signed tokens are checked; only one of them may
	// be set.
	JWKSURL string          `json:"jwks_url,omitempty" min:"1" max:"2048"`
	JWKS    json.RawMessage `json:"jwks,omitempty"`
	// DeniedExportFields are never exported.
	DeniedExportFields []string `json:"denied_export_fields,omitempty" max:"100" each:"min=1 max=64"`

	// Schemas of the metadata that new keys and workspaces have by default.
	KeyMetadata       *MetadataSchema `json:"key_metadata,omitempty"`
	WorkspaceMetadata *MetadataSchema `json:"workspace_metadata,omitempty"`

	UserKeys
	Scim
	Rights
	Open
	// Openings counts by category how often it was opened to workspaces.
	Openings map[string]int64 `json:"openings,omitempty"`
}

// UserKeys are the rules of keys of users.
type UserKeys struct {
	AutoCreate        *bool          `json:"user_api_key_auto_create,omitempty" doc:"Whether a user gets a key on joining a workspace."`
	DefaultAutoCreate *bool          `json:"default_workspace_user_api_key_auto_create,omitempty" doc:"The same for the default workspace."`
	TTL               int64          `json:"user_api_key_ttl,omitempty" min:"60" max:"315360000" doc:"Seconds until a new key expires that does not say when."`
	MaxTTL            int64          `json:"user_api_key_max_ttl,omitempty" min:"60" max:"315360000" doc:"The most seconds until a key expires; keys that never expire are then refused."`
	MaxKeys           int64          `json:"max_user_api_keys,omitempty" min:"1" max:"10000" doc:"How many keys of users a workspace may have."`
	RotationPeriod    RotationPeriod `json:"user_api_key_rotation_period,omitempty" doc:"Days after which keys are rotated: 1 to 365, weekly or monthly."`
}

// Validate tells what does not go together.
func (s *Settings) Validate() []fault.Detail {
	d := bound.Check(s)
	if k := s.UserKeys; k.MaxTTL > 0 && k.TTL > k.MaxTTL {
		d = append(d, fault.Detail{Field: "user_api_key_ttl", Message: "must not exceed user_api_key_max_ttl"})
	}
	if s.JWKSURL != "" && len(s.JWKS) > 0 {
		d = append(d, fault.Detail{Field: "jwks", Message: "cannot be set together with jwks_url"})
	}
	return d
}

// MaxSession is how old a session may become; 0: no bound separate.
func (s *Settings) MaxSession() time.Duration { return time.Duration(s.MaxSessionTTL) * time.Second }

// MaxIdle is how long a session lasts without activity.
func (s *Settings) MaxIdle(standard time.Duration) time.Duration {
	if s.MaxIdleTime == 0 {
		return standard
	}
	return time.Duration(s.MaxIdleTime) * time.Second
}

// AllowsModel reports whether requests may call a model of a provider. An entry of the list is
// model, or provider/model, and may end in *. An entry with a slash names its provider, so that
// another provider's model of that name is not meant.
func (s *Settings) AllowsModel(provider, model string) bool {
	if len(s.AllowedModels) == 0 {
		return true
	}
	return slices.ContainsFunc(s.AllowedModels, func(entry string) bool {
		if of, rest, two := strings.Cut(entry, "/"); two {
			if of != provider {
				return false
			}
			entry = rest
		}
		if start, all := strings.CutSuffix(entry, "*"); all {
			return strings.HasPrefix(model, start)
		}
		return entry == model
	})
}

// CreatesKeys reports whether a user that joins a workspace gets a key.
func (k *UserKeys) CreatesKeys(defaultWorkspace bool) bool {
	on := k.AutoCreate
	if defaultWorkspace {
		on = k.DefaultAutoCreate
	}
	return on != nil && *on
}

// Expiry returns when a key expires. asked is the time that was asked for, which may be nil;
// said reports whether anything was given, even null. ok is false if the time is later than the
// maximum.
func (k *UserKeys) Expiry(asked *time.Time, said bool, now time.Time) (at *time.Time, ok bool) {
	if asked == nil && !said {
		ttl := k.TTL
		if ttl == 0 {
			ttl = k.MaxTTL
		}
		if ttl == 0 {
			return nil, true
		}
		t := now.Add(time.Duration(ttl) * time.Second).UTC().Truncate(time.Millisecond)
		return &t, true
	}
	if k.MaxTTL > 0 && (asked == nil || asked.Sub(now) > time.Duration(k.MaxTTL)*time.Second) {
		return asked, false
	}
	return asked, true
}

// RotationPeriod is a number of days. weekly and monthly are 7 and 30.
type RotationPeriod int

// UnmarshalJSON implements json.Unmarshaler.
func (p *RotationPeriod) UnmarshalJSON(raw []byte) error {
	var days int
	switch string(raw) {
	case "null":
		return nil
	case `"weekly"`:
		days = 7
	case `"monthly"`:
		days = 30
	default:
		var err error
		if days, err = strconv.Atoi(string(raw)); err != nil || days < 1 || days > 365 {
			return fault.Invalid("", "must be 1 to 365, weekly or monthly")
		}
	}
	*p = RotationPeriod(days)
	return nil
}

// String returns the period in words.
func (p RotationPeriod) String() string { return fmt.Sprintf("%d days", int(p)) }

// ExportFields are the fields that exports of logs can have, and can be denied.
var ExportFields = []string{
	"id", "trace_id", "created_at", "request", "response", "is_success", "ai_org", "ai_model", "req_units", "res_units", "total_units", "request_url",
	"cost", "gateway_cost", "gateway_cost_usd", "cost_currency", "cost_unit", "cost_usd", "response_time", "response_status_code", "mode", "config", "prompt_slug", "metadata",
	"span_id", "parent_span_id", "session_id", "agent_id", "parent_agent_id", "workspace_id", "api_key_id", "user_id", "virtual_key", "error_code", "cache_status",
}
