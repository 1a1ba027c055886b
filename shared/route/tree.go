package route

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/route/measure"
)

// Tree is a compiled config. It is never changed and may be shared.
type Tree struct {
	root    *node
	mode    string
	leaves  []*Leaf
	guarded bool // some target has a breaker that decisions depend on
	sticky  bool // some strategy has a sticky rule
	figures bool // some strategy compares figures of its targets
	events  bool // refusals is "event" at the root
	hedges  bool // some strategy has a hedge
}

// node is one place of the tree: a leaf, or a strategy over children.
type node struct {
	path     string
	name     string
	index    int // among its siblings, as written
	weight   float64
	breaker  *Breaker
	guarded  bool   // the parent's strategy checks breaker
	guards   bool   // a child is guarded
	id       uint64 // for sticky rules
	leaf     *Leaf
	mode     string
	children []*node
	onStatus []int
	conds    []compiledCondition
	def      *node // the default of a conditional strategy; nil: none or unknown
	defName  string
	sticky   *StickyRule
	rule     measure.Rule
	hedge    *HedgeRule  // nil: none
	key      measure.Key // of a leaf: its provider, host and, if it names one, model
}

type compiledCondition struct {
	query Query
	then  *node // nil: no target has that name
	name  string
}

// Leaf is one provider call with everything that the config says about it.
type Leaf struct {
	Path   string // config, config.targets[0].targets[1], ...
	Name   string
	Weight float64

	Slug        string         // saved provider, without @
	Provider    string         // provider type; if Slug is empty too, the request names it
	APIKey      string         // for Provider
	Fields      map[string]any // credential fields for Provider
	Passthrough bool           // the request names the provider
	PromptID    string

	Model        string // override_params.model without @slug/; "": none
	DefaultModel string // default_params.model without @slug/

	Retry   *Retry   // nil: no retries
	Cache   *Cache   // nil: off
	Breaker *Breaker // nil: none
	// PromptCache adds markers for the provider's prompt cache; nil: off.
	PromptCache *PromptCache
	Timeout     time.Duration // from sending to the beginning of the response; 0: none
	FirstToken  time.Duration // from sending to the first content of a stream; 0: none
	Idle        time.Duration // between two reads of a stream after that; 0: none
	Hold        time.Duration // how long the beginning of a stream is held for its first content
	CustomHost  string
	Forward     []string // canonical names of client headers to send on
	Lenient     bool     // strict_open_ai_compliance is false
	Input       []Guardrail
	Output      []Guardrail

	// Compiled is what Input and Output were compiled to, once, by the code that runs them.
	Compiled atomic.Value

	FetchIntegrated bool
	edits           edits
}

// At returns the leaf with a model of a saved provider as its target.
func (l *Leaf) At(slug, model string) *Leaf {
	next := *l
	next.Slug, next.Model = slug, model
	next.Provider, next.APIKey, next.Fields, next.CustomHost, next.PromptID = "", "", nil, "", ""
	return &next
}

// inherited are the settings that a node passes down.
type inherited struct {
	override, defaults []Param
	drop               []string
	retry              *Retry
	cache              *Cache
	breaker            *Breaker
	prompts            *PromptCache
	timeout            int64
	firstToken, idle   int64
	hold               *int64
	host               string
	forward            []string
	strict             *bool
	input, output      []Guardrail
	fetch              bool
}

// Single is the tree for a request without a config: one leaf that takes everything from
// the request.
func Single() *Tree {
	c := Config{Path: "config", Weight: 1}
	t, _ := c.Compile()
	return t
}

// Compile resolves the config into a tree. A config that Parse accepted has no
// errors here.
func (c *Config) Compile() (*Tree, []fault.Detail) {
	t := &Tree{mode: ModeSingle, events: c.RefusalEvents}
	var details []fault.Detail
	t.root = t.compile(c, inherited{}, &details)
	if t.root.mode != "" {
		t.mode = t.root.mode
	}
	if len(details) > 0 {
		return nil, details
	}
	return t, nil
}

func (t *Tree) compile(c *Config, from inherited, details *[]fault.Detail) *node {
	here := c.inherit(from)
	n := &node{path: c.Path, name: c.Name, weight: c.Weight, breaker: here.breaker}
	if len(c.Targets) == 0 {
		n.leaf = c.leaf(here, details)
		n.key = n.leaf.measured()
		t.leaves = append(t.leaves, n.leaf)
		return n
	}
	n.mode = ModeSingle
	if s := c.Strategy; s != nil {
		n.mode, n.onStatus, n.sticky, n.defName = s.Mode, s.OnStatusCodes, s.Sticky, s.Default
		if n.hedge = s.Hedge; n.hedge != nil {
			t.hedges, t.figures = true, true // latencies of targets, in every mode
		}
	}
	if Compares(n.mode) {
		m := c.Strategy.Measure
		n.rule = measure.Rule{By: n.mode, Explore: m.Explore, Floor: m.Floor, InOrder: m.TieBreak == TieByOrder}
		t.figures = true
		n.id = identity(c.Name, c.Path)
	}
	byName := map[string]*node{}
	for i, target := range c.Targets {
		child := t.compile(target, here, details)
		child.index = i
		child.id = identity(child.name, child.path)
		child.guarded = child.breaker != nil && n.mode != ModeConditional
		n.guards = n.guards || child.guarded
		n.children = append(n.children, child)
		if _, taken := byName[child.name]; !taken && child.name != "" {
			byName[child.name] = child
		}
	}
	t.guarded = t.guarded || n.guards
	t.sticky = t.sticky || n.sticky != nil
	if n.mode == ModeConditional {
		n.def = byName[n.defName]
		for _, cond := range c.Strategy.Conditions {
			n.conds = append(n.conds, compiledCondition{cond.Query, byName[cond.Then], cond.Then})
		}
	}
	return n
}

// inherit applies the node's own settings over those from above.
func (c *Config) inherit(from inherited) inherited {
	h := from
	h.override = mergeParams(from.override, c.OverrideParams)
	h.defaults = mergeParams(from.defaults, c.DefaultParams)
	if len(c.DropParams) > 0 {
		h.drop = append(slices.Clone(from.drop), c.DropParams...)
	}
	if c.Retry != nil {
		h.retry = c.Retry
	}
	if c.Cache != nil {
		h.cache = c.Cache
	}
	if c.Breaker != nil {
		h.breaker = c.Breaker
	}
	if c.PromptCache != nil {
		h.prompts = c.PromptCache
	}
	if c.RequestTimeout != nil {
		h.timeout = *c.RequestTimeout
	}
	if c.FirstToken != nil {
		h.firstToken = *c.FirstToken
	}
	if c.StreamIdle != nil {
		h.idle = *c.StreamIdle
	}
	if c.Hold != nil {
		h.hold = c.Hold
	}
	if c.CustomHost != nil {
		h.host = *c.CustomHost
	}
	if c.ForwardHeaders != nil {
		h.forward = c.ForwardHeaders
	}
	if c.StrictOpenAI != nil {
		h.strict = c.StrictOpenAI
	}
	if c.Input != nil {
		h.input = c.Input
	}
	if c.Output != nil {
		h.output = c.Output
	}
	h.fetch = h.fetch || c.FetchIntegratedModels
	return h
}

// mergeParams puts the child's fields over the parent's, key by key.
func mergeParams(parent, child []Param) []Param {
	if len(child) == 0 {
		return parent
	}
	merged := slices.Clone(parent)
	for _, p := range child {
		i := slices.IndexFunc(merged, func(q Param) bool { return q.Key == p.Key })
		if i >= 0 {
			merged[i] = p
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

func (c *Config) leaf(h inherited, details *[]fault.Detail) *Leaf {
	l := &Leaf{
		Path: c.Path, Name: c.Name, Weight: c.Weight,
		APIKey: c.APIKey, Fields: c.Fields, Passthrough: c.Passthrough, PromptID: c.PromptID,
		Retry: h.retry, Cache: h.cache, Breaker: h.breaker, Timeout: milliseconds(h.timeout),
		FirstToken: milliseconds(h.firstToken), Idle: milliseconds(h.idle), Hold: MaxHold,
		CustomHost: h.host, Forward: h.forward, Lenient: h.strict != nil && !*h.strict,
		Input: h.input, Output: h.output, FetchIntegrated: h.fetch,
	}
	if h.prompts != nil && !h.prompts.Off {
		l.PromptCache = h.prompts
	}
	if h.hold != nil {
		l.Hold = milliseconds(*h.hold)
	}
	if slug, ok := strings.CutPrefix(c.Provider, "@"); ok {
		l.Slug = slug
	} else {
		l.Provider = c.Provider
	}
	if l.Slug == "" && l.Provider == "" {
		l.Slug = c.VirtualKey
	}
	override, slug := modelParam(h.override, c.Path, "override_params", details)
	if l.Model = override; slug != "" {
		l.Slug, l.Provider = slug, ""
	}
	byDefault, slug := modelParam(h.defaults, c.Path, "default_params", details)
	if l.DefaultModel = byDefault; l.Slug == "" && l.Provider == "" && slug != "" {
		l.Slug = slug
	}
	l.edits = newEdits(h, override, byDefault)
	return l
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Mode is the strategy of the root: one of the constants Mode....
func (t *Tree) Mode() string { return t.mode }

// RefusalEvents reports whether final rejections of streamed requests are sent as an event.
func (t *Tree) RefusalEvents() bool { return t.events }

// Guarded reports whether decisions depend on breakers.
func (t *Tree) Guarded() bool { return t.guarded }

// Sticky reports whether a strategy has a sticky rule.
func (t *Tree) Sticky() bool { return t.sticky }

// Leaves gives the leaves in the order of the config. The caller must not
// change them.
func (t *Tree) Leaves() []*Leaf { return t.leaves }

// Slugs are the saved providers that the leaves name; nil if one of them takes its provider
// from the request, so that any may be used.
func (t *Tree) Slugs() []string {
	var slugs []string
	for _, l := range t.leaves {
		if l.Passthrough || l.Slug == "" && l.Provider == "" {
			return nil
		}
		if l.Slug != "" && !slices.Contains(slugs, l.Slug) {
			slugs = append(slugs, l.Slug)
		}
	}
	return slugs
}

// Prompts are the prompts that the leaves name; nil unless every leaf names one.
func (t *Tree) Prompts() []string {
	var names []string
	for _, l := range t.leaves {
		if l.PromptID == "" {
			return nil
		}
		names = append(names, l.PromptID)
	}
	return names
}

// FetchIntegrated reports whether a leaf requests the gateway-managed list of models.
func (t *Tree) FetchIntegrated() bool {
	return slices.ContainsFunc(t.leaves, func(l *Leaf) bool { return l.FetchIntegrated })
}
