package route

import (
	"encoding/json"
	"time"

	"gateway/shared/resource"
	"gateway/shared/usage"
)

// KindConfig is the kind of saved configs. The body of their records is the
// config's JSON as it was accepted by Parse in Strict mode.
const KindConfig resource.Kind = "CONFIG"

// Strategy modes.
const (
	ModeSingle      = "single"
	ModeLoadbalance = "loadbalance"
	ModeFallback    = "fallback"
	ModeConditional = "conditional"
	ModeLatency     = usage.ByLatency
	ModeCost        = usage.ByCost
	ModeLeastBusy   = usage.ByLoad
)

// Config is one node of a config object: the root and each target have the
// same form.
type Config struct {
	Path string // config, config.targets[0], ...

	Strategy *Strategy
	Targets  []*Config
	Name     string
	Weight   float64 // 1 when absent

	Provider    string // @slug or a provider type
	VirtualKey  string // slug of a saved provider
	APIKey      string
	Fields      map[string]any // credential fields of the provider
	Passthrough bool           // the request itself names the provider
	PromptID    string

	OverrideParams []Param
	DefaultParams  []Param
	DropParams     []string

	Retry          *Retry
	Cache          *Cache
	Breaker        *Breaker
	PromptCache    *PromptCache
	RequestTimeout *int64 // milliseconds; 0 switches an inherited timeout off
	FirstToken     *int64 // first_token_timeout, the same
	StreamIdle     *int64 // stream_idle_timeout, the same
	Hold           *int64 // first_event_hold_ms; 0: the beginning of a stream is not held
	CustomHost     *string
	ForwardHeaders []string // nil: absent
	StrictOpenAI   *bool
	RefusalEvents  bool // refusals is "event"

	Input, Output []Guardrail // nil: absent; hooks, then guardrails, then mutators

	FetchIntegratedModels bool
}

// Param is one body field that a config sets. Value is its JSON.
type Param struct {
	Key   string
	Value json.RawMessage
}

// Strategy states how a node chooses among its targets.
type Strategy struct {
	Mode          string
	OnStatusCodes []int // fallback; nil: absent; empty: no status falls back
	Conditions    []Condition
	Default       string // name of a target
	Sticky        *StickyRule
	Measure       MeasureRule // latency, cost, least_busy
	Hedge         *HedgeRule  // nil: none
}

// MeasureRule is how a strategy chooses that compares figures of its targets.
type MeasureRule struct {
	Explore  float64 // share of the requests that go to another target than the best one
	Floor    int     // min_observations: latencies that a target needs before figures decide
	TieBreak string  // TieByWeight or TieByOrder
}

// Values of tie_break: among equals, one by weight or the first in the config.
const (
	TieByWeight = "weight"
	TieByOrder  = "order"
)

// Standards and bounds of a MeasureRule.
const (
	DefaultExplore = 0.01 // of latency; other figures need no requests to stay current
	MaxExplore     = 0.5
	DefaultFloor   = 3
	MaxFloor       = 100
)

// Compares reports whether a mode compares figures of targets.
func Compares(mode string) bool {
	return mode == ModeLatency || mode == ModeCost || mode == ModeLeastBusy
}

// Condition sends a request that matches Query to the target named Then.
type Condition struct {
	Query Query
	Then  string
}

// StickyRule routes requests with the same field values to the same target.
type StickyRule struct {
	Fields []string // metadata.x, params.x
	TTL    time.Duration
}

// Cache states how responses may be reused. Parse has checked its limits.
type Cache struct {
	Mode   string        // simple or semantic
	MaxAge time.Duration // 0: the standard, or the organization's
	// Embedder makes vectors of the users' words; nil: a semantic cache finds only equal
	// requests.
	Embedder  *CacheEmbedder
	Threshold float64 // least cosine of texts that mean the same; 0: the standard
}

// PromptCache adds markers for the provider's own prompt cache, if the provider has one and
// the client has set few markers.
type PromptCache struct {
	Hour bool // they hold for an hour, not for five minutes
	Off  bool // switches an inherited one off
}

// CacheEmbedder is the model that a semantic cache compares texts by.
type CacheEmbedder struct {
	Slug  string // saved provider, without @
	Model string
}

// Guardrail is a reference to a saved guardrail (Slug), or one written out in
// the config (Raw), in any of the accepted forms.
type Guardrail struct {
	Field string // its path, as Parse reports it
	Slug  string
	Raw   json.RawMessage
	Form  GuardrailForm
}

// GuardrailForm is the field that contained the entry.
type GuardrailForm string

// The forms, in the order in which they run.
const (
	FormHook      GuardrailForm = "hook"      // before_request_hooks, after_request_hooks
	FormGuardrail GuardrailForm = "guardrail" // input_guardrails, output_guardrails
	FormMutator   GuardrailForm = "mutator"   // input_mutators, output_mutators
)

// field is the path of a node's field as Parse reports it: without the root's
// own name.
func field(node, name string) string {
	const root = "config"
	if node == root {
		return name
	}
	return node[len(root)+1:] + "." + name
}

// Bounds of a config.
const (
	MaxTargets            = 100  // of the root
	MaxConditionalTargets = 1000 // of a root that chooses by conditions
	MaxNestedTargets      = 50   // of any other node
	MaxNesting            = 8    // levels of targets below the root
	MaxNodes              = 5000 // targets in all
	MaxRetryAttempts      = 5
	MinCooldown           = 30 * time.Second
	MinCacheAge           = time.Minute
	MaxCacheAge           = 90 * 24 * time.Hour
	MinCacheThreshold     = 0.5
	DefaultStickyTTL      = time.Hour
	MaxStickyTTL          = 365 * 24 * time.Hour
	MaxHold               = 20 * time.Second // also the standard
	MaxStreamTimeout      = 10 * time.Minute // of first_token_timeout and stream_idle_timeout
	MaxConditions         = 1000             // of one strategy, where configs are saved
	MaxListed             = 1000             // entries of any other list, the same
)
