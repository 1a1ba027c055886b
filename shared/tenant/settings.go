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

// Settings of an organization. If the organization has opened a setting's category, a workspace
// may override it; see LoadSettings.
type Settings struct {
	// BlockInlineConfig rejects inline configuration in requests, which must name saved
	// resources instead. It is on for organizations that the API creates.
	BlockInlineConfig bool `json:"block_inline_config"`
	// RequestLogging is LogFull (the default) or LogMetrics.
	RequestLogging string `json:"request_logging,omitempty" enum:"full,metrics"`
	// Lenient makes the administration API ignore unknown fields and query parameters.
	Lenient bool `json:"lenient,omitempty"`
	// EnforceDebug, if set, is whether bodies are logged: it overrides RequestLogging and the
	// header x-gateway-debug.
	EnforceDebug *bool `json:"enforce_debug,omitempty"`
	// LogDays is the retention of logs and of the counts derived from them, in days. Zero means
	// the retention of the installation.
	LogDays int64 `json:"log_retention_days,omitempty" min:"1" max:"36500"`
	// Unpriced is UnpricedRefuse (the default) or UnpricedAllow: the handling of a model
	// without a price while a cost budget applies.
	Unpriced string `json:"unpriced,omitempty" enum:"refuse,allow"`
	// Unbounded is UnboundedRefuse (the default) or UnboundedAllow: the handling, while a
	// budget applies, of a batch with unreadable rows, and of a request with input that is
	// stored at or fetched by a provider if the context window of the model is unknown.
	Unbounded string `json:"unbounded,omitempty" enum:"refuse,allow"`
	// ModelPrices are the organization's prices, {"provider/model": pricing_config}, and
	// PriceMultiplier its multipliers; see pricing.Overrides.
	ModelPrices     json.RawMessage `json:"model_prices,omitempty"`
	PriceMultiplier json.RawMessage `json:"price_multiplier,omitempty"`
	// CacheMaxAge is the default and maximum lifetime of cached responses in seconds. Zero
	// means the cache's default, limited only by configs.
	CacheMaxAge int64 `json:"cache_max_age,omitempty" min:"60" max:"25923000"`
	// AllowedModels are the models that requests may use. Empty means all. See AllowsModel.
	AllowedModels []string `json:"allowed_models,omitempty" max:"1000" each:"min=1 max=255"`

	// MaxSessionTTL is the maximum lifetime of a session in seconds. Zero means no separate
	// limit.
	MaxSessionTTL int64 `json:"max_session_ttl,omitempty" min:"900" max:"31536000"`
	// MaxIdleTime is the maximum idle time of a session in seconds. Zero means the default.
	MaxIdleTime int64 `json:"max_idle_time,omitempty" min:"300" max:"31536000"`
	// JWKSURL and JWKS are the keys for signed tokens; only one of them may be set.
	JWKSURL string          `json:"jwks_url,omitempty" min:"1" max:"2048"`
	JWKS    json.RawMessage `json:"jwks,omitempty"`
	// JWKSSponsor is the owner who last saved the keys. See membership.SetResponsible.
	JWKSSponsor string `json:"jwks_sponsor,omitempty"`
	// DeniedExportFields are never exported.
	DeniedExportFields []string `json:"denied_export_fields,omitempty" max:"100" each:"min=1 max=64"`

	// Default schemas of the metadata of new keys and workspaces.
	KeyMetadata       *MetadataSchema `json:"key_metadata,omitempty"`
	WorkspaceMetadata *MetadataSchema `json:"workspace_metadata,omitempty"`

	UserKeys
	Scim
	RolePermissions
	OverridableCategories
	// Openings counts by category how often it was opened to workspaces.
	Openings map[string]int64 `json:"openings,omitempty"`
}

// UserKeys are the rules for users' keys.
type UserKeys struct {
	AutoCreate        *bool          `json:"user_api_key_auto_create,omitempty" doc:"Whether a user gets a key on joining a workspace."`
	DefaultAutoCreate *bool          `json:"default_workspace_user_api_key_auto_create,omitempty" doc:"The same for the default workspace."`
	TTL               int64          `json:"user_api_key_ttl,omitempty" min:"60" max:"315360000" doc:"Default lifetime of new keys in seconds."`
	MaxTTL            int64          `json:"user_api_key_max_ttl,omitempty" min:"60" max:"315360000" doc:"Maximum lifetime of keys in seconds. New keys without an end get it, and it cannot be removed later."`
	MaxKeys           int64          `json:"max_user_api_keys,omitempty" min:"1" max:"10000" doc:"Maximum number of user keys in a workspace."`
	RotationPeriod    RotationPeriod `json:"user_api_key_rotation_period,omitempty" doc:"Rotation period of keys: 1 to 365 days, weekly or monthly."`
}

// Validate returns the faults of field combinations.
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

// MaxSession returns the maximum lifetime of a session. Zero means no separate limit.
func (s *Settings) MaxSession() time.Duration { return time.Duration(s.MaxSessionTTL) * time.Second }

// MaxIdle returns the maximum idle time of a session.
func (s *Settings) MaxIdle(standard time.Duration) time.Duration {
	if s.MaxIdleTime == 0 {
		return standard
	}
	return time.Duration(s.MaxIdleTime) * time.Second
}

// AllowsModel reports whether requests may use a model of a provider. An entry of the list is
// model or provider/model, and may end in *. An entry with a slash does not match another
// provider's model of that name.
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

// CreatesKeys reports whether a user who joins a workspace gets a key.
func (k *UserKeys) CreatesKeys(defaultWorkspace bool) bool {
	on := k.AutoCreate
	if defaultWorkspace {
		on = k.DefaultAutoCreate
	}
	return on != nil && *on
}

// Expiry returns when a key expires. The first argument is the requested time or nil, the
// second is set if the request contains the field, even as null. ok is false if the time
// exceeds the maximum.
func (k *UserKeys) Expiry(requested *time.Time, explicit bool, now time.Time) (at *time.Time, ok bool) {
	if requested == nil && !explicit {
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
	if k.MaxTTL > 0 && (requested == nil || requested.Sub(now) > time.Duration(k.MaxTTL)*time.Second) {
		return requested, false
	}
	return requested, true
}

// RotationPeriod is a number of days. weekly and monthly are 7 and 30.
type RotationPeriod int

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

// String returns the period as text.
func (p RotationPeriod) String() string { return fmt.Sprintf("%d days", int(p)) }

// ExportFields are the fields of log exports, which can be denied.
var ExportFields = []string{
	"id", "trace_id", "created_at", "request", "response", "is_success", "ai_org", "ai_model", "req_units", "res_units", "total_units", "request_url",
	"cost", "gateway_cost", "gateway_cost_usd", "cost_currency", "cost_unit", "cost_usd", "response_time", "response_status_code", "mode", "config", "prompt_slug", "metadata",
	"span_id", "parent_span_id", "session_id", "agent_id", "parent_agent_id", "workspace_id", "api_key_id", "user_id", "virtual_key", "error_code", "cache_status",
}

// Scim configures how users and groups from an identity provider are handled.
type Scim struct {
	GroupPrefix   string `json:"scim_group_prefix,omitempty" max:"64"`
	RoleSeparator string `json:"scim_role_separator,omitempty" max:"64"`
	// GroupProvisions reactivates deactivated users who are added to a group.
	GroupProvisions bool `json:"group_based_user_provisioning,omitempty"`
	// UserGroups returns groups as part of the user instead of users as part of the group.
	UserGroups bool `json:"scim_user_groups,omitempty"`
	// ScimOnly allows only the identity provider to add and remove users and to assign roles.
	ScimOnly bool `json:"scim_only_users,omitempty"`
}

// Default name patterns of groups that are mapped automatically.
const (
	GroupPrefix   = "ws-"
	RoleSeparator = "-role-"
)

// AutomaticGroup parses the name of a group that contains its workspace and role. ok is false
// for other names.
func (s *Scim) AutomaticGroup(name string) (workspace, role string, ok bool) {
	prefix, separator := s.GroupPrefix, s.RoleSeparator
	if prefix == "" {
		prefix = GroupPrefix
	}
	if separator == "" {
		separator = RoleSeparator
	}
	if len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return "", "", false
	}
	rest := name[len(prefix):]
	for i := len(rest) - len(separator); i > 0; i-- {
		if !strings.EqualFold(rest[i:i+len(separator)], separator) {
			continue
		}
		switch role = strings.ToLower(rest[i+len(separator):]); role {
		case "admin", "manager", "member":
			workspace = strings.TrimSpace(rest[:i])
			return workspace, role, workspace != ""
		}
	}
	return "", "", false
}
