package route

import (
	"bytes"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/wire"
)

// Mode is how strictly a config is read.
type Mode uint8

const (
	// Strict is for configs that are saved: unknown properties, bad references
	// between targets and values out of bounds are rejected.
	Strict Mode = iota
	// Lenient is for configs that come with a request: unknown properties are ignored, and a
	// value out of bounds is replaced by the nearest allowed one if there is one.
	Lenient
)

// Parse reads a config object. It gives all field errors at once, each with its JSON path;
// the config is nil if there are any.
func Parse(raw []byte, mode Mode) (*Config, []fault.Detail) {
	if err := wire.CheckStrict(raw, wire.MaxDepth); err != nil {
		f := fault.From(err)
		return nil, []fault.Detail{{Field: f.Field, Message: f.Message}}
	}
	r := &reader{strict: mode == Strict}
	root := value{raw: bytes.TrimSpace(raw)}
	if root.kind() != wire.KindObject {
		return nil, []fault.Detail{{Message: "A config must be a JSON object"}}
	}
	c := parseNode(r, root, "config", 0)
	if r.strict && len(r.details) == 0 && !c.meaningful() {
		r.add("", "A config must name a provider, targets with a strategy, or a setting such as retry or cache")
	}
	if len(r.details) > 0 {
		return nil, r.details
	}
	return c, nil
}

// ParseSaved reads the body of a saved config. It was checked strictly when it was saved,
// so it still works if later versions would reject it.
func ParseSaved(raw []byte) (*Config, []fault.Detail) { return Parse(raw, Lenient) }

// meaningful reports whether the root has any content.
func (c *Config) meaningful() bool {
	return c.Provider != "" || c.VirtualKey != "" || c.Strategy != nil || len(c.Targets) > 0 || c.Cache != nil || c.PromptCache != nil ||
		c.Retry != nil || c.PromptID != "" || c.ForwardHeaders != nil || c.RequestTimeout != nil || c.FirstToken != nil || c.StreamIdle != nil || c.Hold != nil || c.CustomHost != nil ||
		c.Input != nil || c.Output != nil || c.Passthrough || len(c.DefaultParams) > 0 || len(c.DropParams) > 0 ||
		len(c.OverrideParams) > 0 || len(c.Fields) > 0 || c.APIKey != "" || c.FetchIntegratedModels || c.StrictOpenAI != nil || c.RefusalEvents
}

// parseNode reads the root or a target.
func parseNode(r *reader, v value, path string, level int) *Config {
	c := &Config{Path: path, Weight: 1}
	var targets, breaker value
	hooks := map[string]value{}
	r.members(v, func(key string, v value) {
		switch key {
		case "strategy":
			c.Strategy = parseStrategy(r, v, &breaker)
		case "targets":
			targets = v
		case "cb_config":
			breaker = v
		case "input_guardrails", "output_guardrails", "before_request_hooks", "after_request_hooks", "input_mutators", "output_mutators":
			hooks[key] = v
		case "beforeRequestHooks", "afterRequestHooks", "inputGuardrails", "outputGuardrails", "inputMutators", "outputMutators":
			hooks[snake(key)] = v
		case "options", "mode":
			if level == 0 {
				r.add(v.path, "This version of config is not supported in this route. Please migrate to the latest version")
			} else {
				r.unknown(v, "a target")
			}
		default:
			parseProperty(r, c, key, v)
		}
	})
	c.Input = parseHooks(r, hooks["before_request_hooks"], hooks["input_guardrails"], hooks["input_mutators"])
	c.Output = parseHooks(r, hooks["after_request_hooks"], hooks["output_guardrails"], hooks["output_mutators"])
	if breaker.raw != nil {
		c.Breaker = parseBreaker(r, breaker)
	}
	if targets.raw != nil {
		parseTargets(r, c, targets, level)
	}
	check(r, c, v, level)
	return c
}

// parseProperty reads a simple field of a node.
func parseProperty(r *reader, c *Config, key string, v value) {
	switch key {
	case "name":
		c.Name = r.name(v)
	case "weight":
		c.Weight = r.number(v, 0, math.MaxInt32)
	case "provider":
		c.Provider = parseProvider(r, v)
	case "virtual_key":
		c.VirtualKey = strings.TrimPrefix(r.name(v), "@")
	case "api_key":
		c.APIKey = r.name(v)
	case "passthrough":
		c.Passthrough = r.flag(v)
	case "prompt_id":
		c.PromptID = r.name(v)
	case "override_params":
		c.OverrideParams = r.params(v)
		parseStreamParam(r, v, c.OverrideParams)
	case "default_params":
		c.DefaultParams = r.params(v)
		parseStreamParam(r, v, c.DefaultParams)
	case "drop_params":
		c.DropParams = parseDropParams(r, v)
	case "retry":
		c.Retry = parseRetry(r, v)
	case "cache":
		c.Cache = parseCache(r, v)
	case "prompt_cache":
		c.PromptCache = parsePromptCache(r, v)
	case "request_timeout":
		n := r.whole(v, 0)
		c.RequestTimeout = &n
	case "first_token_timeout":
		c.FirstToken = parseWait(r, v, MaxStreamTimeout)
	case "stream_idle_timeout":
		c.StreamIdle = parseWait(r, v, MaxStreamTimeout)
	case "first_event_hold_ms":
		c.Hold = parseWait(r, v, MaxHold)
	case "custom_host":
		c.CustomHost = parseCustomHost(r, v)
	case "forward_headers":
		c.ForwardHeaders = parseForwardHeaders(r, v)
	case "strict_open_ai_compliance":
		b := r.flag(v)
		c.StrictOpenAI = &b
	case "refusals":
		if c.RefusalEvents = r.text(v) == "event"; !c.RefusalEvents {
			r.add(v.path, "must be event")
		}
	case "on_status_codes":
		r.statuses(v) // it is checked, but only the strategy's list has an effect
	case "fetch_integrated_models":
		c.FetchIntegratedModels = r.flag(v)
	default:
		if !credentialField(key) {
			r.unknown(v, "a config")
			return
		}
		if c.Fields == nil {
			c.Fields = map[string]any{}
		}
		c.Fields[key] = r.anything(v)
	}
}

// parseWait reads a time in milliseconds, of at most most.
func parseWait(r *reader, v value, most time.Duration) *int64 {
	n := r.whole(v, 0)
	if limit := most.Milliseconds(); n > limit {
		r.add(v.path, "must be at most %d milliseconds", limit)
		n = limit
	}
	return &n
}

// credentialField reports whether some provider has a credential field key.
func credentialField(key string) bool {
	_, ok := credentialFields[key]
	return ok
}

var credentialFields = func() map[string]struct{} {
	names := map[string]struct{}{"custom_headers": {}}
	for _, p := range provider.All() {
		for _, f := range p.Fields {
			names[f.Name] = struct{}{}
			for _, alias := range f.Aliases {
				names[alias] = struct{}{}
			}
		}
	}
	return names
}()

// snake turns the camelCase spelling of the hook keys into the usual one.
func snake(key string) string {
	var b strings.Builder
	for _, c := range key {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// parseStreamParam requires true or false, because the response follows
// override_params.stream and default_params.stream.
func parseStreamParam(r *reader, v value, params []Param) {
	for _, p := range params {
		if p.Key == "stream" && !wire.IsNull(p.Value) {
			r.is(value{raw: p.Value, path: v.path + ".stream"}, wire.KindBool)
		}
	}
}

func parseProvider(r *reader, v value) string {
	s := r.name(v)
	switch {
	case s == "" || len(s) > 1 && s[0] == '@':
		return s
	case s == "@":
		r.add(v.path, "must name a saved provider after @")
	default:
		if _, ok := provider.ByID(s); !ok {
			r.add(v.path, "must be @ and the slug of a saved provider, or a known provider such as openai")
		}
	}
	return s
}

func parseCustomHost(r *reader, v value) *string {
	s := r.text(v)
	if s != "" {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(s) > 2048 {
			r.add(v.path, "must be a URL such as https://host/v1")
		}
	}
	return &s
}

// neverForwarded are headers that a config may not copy to a provider.
var neverForwarded = []string{"X-Gateway-Forward-Headers", "Metadata-Flavor", "X-Aws-Ec2-Metadata-Token", "X-Google-Metadata-Request"}

func parseForwardHeaders(r *reader, v value) []string {
	var names []string
	if v.kind() == wire.KindString && !r.strict {
		names = wire.ParseList(r.text(v))
	} else {
		names = r.texts(v)
	}
	out := []string{}
	for _, name := range names {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case slices.Contains(neverForwarded, canonical):
			r.add(v.path, "forward_headers must not contain the '%s' header", strings.ToLower(canonical))
		case strings.ContainsAny(name, " :\r\n\t,;\"") || len(name) > 256:
			r.add(v.path, "must be a list of header names")
		default:
			out = append(out, canonical)
		}
	}
	return out
}
