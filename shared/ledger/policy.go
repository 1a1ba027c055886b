package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// The kinds of records of policies.
const (
	KindUsagePolicy resource.Kind = "USAGEPOLICY"
	KindRatePolicy  resource.Kind = "RATEPOLICY"
)

// Measures of rate policies.
const (
	TargetLLM      = "llm"
	TargetMCPTools = "mcp_tools"
)

// Wildcard matches every value, but not an absent one.
const Wildcard = "*"

// Limits of policies.
const (
	maxConditions = 20
	maxGroups     = 10
	maxValues     = 100
	maxValue      = 255 // bytes
)

// metadataKey is the prefix of keys of the request's metadata.
const metadataKey = "metadata."

// policyKeys are the keys of conditions and groups, and where they are allowed.
var policyKeys = map[string]struct{ llm, mcp, ratesOnly bool }{
	"api_key": {llm: true, mcp: true}, "virtual_key": {llm: true}, "provider": {llm: true}, "config": {llm: true}, "prompt": {llm: true}, "model": {llm: true},
	"endpoint_type": {llm: true, ratesOnly: true}, "workspace_id": {llm: true, mcp: true}, "organisation_id": {llm: true},
	"mcp_server": {mcp: true}, "mcp_tool": {mcp: true},
}

// OneOrMany is a text or a list of texts; it is written in the form in which it was read.
type OneOrMany struct {
	Values []string
	List   bool
}

// MarshalJSON returns the form that was read.
func (o OneOrMany) MarshalJSON() ([]byte, error) {
	if !o.List && len(o.Values) == 1 {
		return json.Marshal(o.Values[0])
	}
	return json.Marshal(o.Values)
}

// UnmarshalJSON reads both forms.
func (o *OneOrMany) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*o = OneOrMany{Values: []string{one}}
		return nil
	}
	o.List = true
	return json.Unmarshal(raw, &o.Values)
}

// Condition must hold for a request that a policy counts.
type Condition struct {
	Key      string     `json:"key"`
	Value    OneOrMany  `json:"value"`
	Excludes *OneOrMany `json:"excludes,omitempty"`
}

// Group is a key with separate counters for each of its values.
type Group struct {
	Key string `json:"key"`
}

// PolicyForm is the stored form of a policy: the body of its record. One of Limit
// and Rate is set.
type PolicyForm struct {
	Description string      `json:"description,omitempty" max:"500"`
	Conditions  []Condition `json:"conditions"`
	GroupBy     []Group     `json:"group_by,omitempty"`
	Target      string      `json:"target,omitempty" enum:"llm,mcp_tools"`
	Limit       *UsageLimit `json:"limit,omitempty"`
	Rate        *RateLimit  `json:"rate,omitempty"`
}

// Validate returns all errors of conditions and groups.
func (p *PolicyForm) Validate() []fault.Detail {
	d := &details{}
	if n := len(p.Conditions); n < 1 || n > maxConditions {
		d.add("conditions", "must have 1 to %d entries", maxConditions)
	}
	for i, c := range p.Conditions {
		at := fmt.Sprintf("conditions[%d]", i)
		p.key(d, c.Key, at)
		values(d, c.Key, c.Value.Values, at+".value", 1)
		if c.Excludes != nil {
			values(d, c.Key, c.Excludes.Values, at+".excludes", 0)
		}
	}
	least := 1
	if p.Target == TargetMCPTools {
		least = 0 // one counter for all
	}
	if n := len(p.GroupBy); n < least || n > maxGroups {
		d.add("group_by", "must have %d to %d entries", least, maxGroups)
	}
	for i, g := range p.GroupBy {
		p.key(d, g.Key, fmt.Sprintf("group_by[%d]", i))
		if slices.Index(p.GroupBy, g) < i {
			d.add(fmt.Sprintf("group_by[%d].key", i), "must not be listed twice")
		}
	}
	return d.list
}

// key rejects attributes that requests do not have.
func (p *PolicyForm) key(d *details, key, at string) {
	if name, ok := strings.CutPrefix(key, metadataKey); ok {
		if name == "" || len(name) > maxValue {
			d.add(at+".key", "must have a metadata key after %s", metadataKey)
		}
		return
	}
	mcp, rates := p.Target == TargetMCPTools, p.Rate != nil
	k, ok := policyKeys[key]
	if ok && (mcp && k.mcp || !mcp && k.llm) && (rates || !k.ratesOnly) {
		return
	}
	var allowed []string
	for name, k := range policyKeys {
		if (mcp && k.mcp || !mcp && k.llm) && (rates || !k.ratesOnly) {
			allowed = append(allowed, name)
		}
	}
	slices.Sort(allowed)
	d.add(at+".key", "must be %s, or %s and a key", strings.Join(allowed, ", "), metadataKey)
}

func values(d *details, key string, list []string, at string, least int) {
	if len(list) < least || len(list) > maxValues {
		d.add(at, "must have %d to %d values", least, maxValues)
	}
	for i, v := range list {
		path := at
		if len(list) > 1 {
			path = fmt.Sprintf("%s[%d]", at, i)
		}
		switch {
		case v == "" || len(v) > maxValue:
			d.add(path, "must have 1 to %d bytes", maxValue)
		case v == Wildcard:
		case key == "model" && !saved(v):
			d.add(path, "must be @provider/model, @provider/* or *")
		}
	}
}

// saved reports whether a text is @provider/model.
func saved(v string) bool {
	provider, model, ok := strings.Cut(strings.TrimPrefix(v, "@"), "/")
	return v[0] == '@' && ok && provider != "" && model != ""
}

// matches reports whether a condition's values contain one of the request's values of the
// key. A request may have several names for one thing, such as a provider's slug and its
// vendor's name.
func (o *OneOrMany) matches(key string, have []string) bool {
	for _, v := range o.Values {
		for _, h := range have {
			if h == "" {
				continue
			}
			provider, all := strings.CutSuffix(v, "/*")
			if v == Wildcard || v == h || key == "model" && all && strings.HasPrefix(h, provider+"/") {
				return true
			}
		}
	}
	return false
}

// Matches reports whether the policy counts a request: all conditions hold. attribute returns
// the request's values of a key. A request without a value, such as one without the metadata of
// a condition, does not match, not even Wildcard.
func (p *PolicyForm) Matches(attribute func(key string) []string) bool {
	for i := range p.Conditions {
		c := &p.Conditions[i]
		have := attribute(c.Key)
		if !c.Value.matches(c.Key, have) || c.Excludes != nil && c.Excludes.matches(c.Key, have) {
			return false
		}
	}
	return true
}

// escapedValue escapes values in keys of several groups, so that no value can contain the
// separator. Keys of values without these characters are those of earlier versions.
var escapedValue = strings.NewReplacer(`\`, `\\`, `,`, `\,`)

// ValueKey returns the counter of a request: key:value of all groups, separated by
// commas. Different values have different counters. ok is false for a request without a
// value for one of the groups, which is not counted.
func (p *PolicyForm) ValueKey(attribute func(key string) []string) (valueKey string, ok bool) {
	parts := make([]string, len(p.GroupBy))
	for i, g := range p.GroupBy {
		have := attribute(g.Key)
		if len(have) == 0 || have[0] == "" {
			return "", false
		}
		value := have[0]
		if len(p.GroupBy) > 1 {
			value = escapedValue.Replace(value)
		}
		parts[i] = g.Key + ":" + value
	}
	if len(parts) == 0 {
		return Wildcard, true
	}
	return strings.Join(parts, ","), true
}

// SubjectOf returns the subject of one of a policy's counters; "" for all of them.
func (p *PolicyForm) SubjectOf(sc store.Scope, id, label string, revision int64, valueKey string) *Subject {
	s := &Subject{Scope: sc, Kind: Policy, ID: id, Bucket: valueKey, Label: label, Revision: revision}
	if p.Limit != nil {
		s.Budgets = []UsageLimit{*p.Limit}
	}
	if p.Rate != nil {
		s.Rates = []RateLimit{*p.Rate}
	}
	return s
}

// SavedPolicy is a policy as used by requests. It is shared and immutable.
type SavedPolicy struct {
	ID, Name, Status string
	Scope            store.Scope
	Revision         int64
	PolicyForm
}

// DecodePolicy decodes a record.
func DecodePolicy(rec resource.Record) (*SavedPolicy, error) {
	p := &SavedPolicy{ID: rec.ID, Name: rec.Name, Status: rec.Status, Scope: rec.Scope, Revision: rec.Rev}
	if err := json.Unmarshal(rec.Body, &p.PolicyForm); err != nil {
		return nil, fmt.Errorf("ledger: stored policy %s: %w", rec.ID, err)
	}
	return p, nil
}

// CheckConditions returns the errors of the form of conditions; PolicyForm checks their
// meaning.
func CheckConditions(raw json.RawMessage) []fault.Detail {
	d := &details{}
	for _, el := range d.elements(raw, "", true, false, maxConditions) {
		d.known(el.fields, el.path, []string{"key", "value", "excludes"})
		d.text(el.fields, el.path, "key")
		if v, ok := d.required(el.fields, el.path, "value"); ok {
			d.oneOrMany(v, el.path+".value")
		}
		if v, ok := present(el.fields, "excludes"); ok {
			d.oneOrMany(v, el.path+".excludes")
		}
	}
	return d.list
}

// CheckGroups is CheckConditions for groups.
func CheckGroups(raw json.RawMessage) []fault.Detail {
	d := &details{}
	for _, el := range d.elements(raw, "", true, false, maxGroups) {
		d.known(el.fields, el.path, []string{"key"})
		d.text(el.fields, el.path, "key")
	}
	return d.list
}

func (d *details) text(fields map[string]json.RawMessage, path, key string) {
	if raw, ok := d.required(fields, path, key); ok {
		var s *string
		if json.Unmarshal(raw, &s) != nil || s == nil {
			d.add(join(path, key), "must be a string")
		}
	}
}

func (d *details) oneOrMany(raw json.RawMessage, path string) {
	var one *string
	var list []*string
	if json.Unmarshal(raw, &one) == nil && one != nil {
		return
	}
	if json.Unmarshal(raw, &list) != nil || list == nil || slices.Contains(list, nil) {
		d.add(path, "must be a string or a list of strings")
	}
}

// Schemas of conditions and groups.
var (
	textOrList       = map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}}
	ConditionsSchema = map[string]any{"type": "array", "minItems": 1, "maxItems": maxConditions, "items": map[string]any{
		"type": "object", "required": []string{"key", "value"}, "properties": map[string]any{"key": map[string]any{"type": "string", "example": "metadata.team"}, "value": textOrList, "excludes": textOrList},
	}}
	GroupsSchema = map[string]any{"type": "array", "maxItems": maxGroups, "items": map[string]any{
		"type": "object", "required": []string{"key"}, "properties": map[string]any{"key": map[string]any{"type": "string", "example": "api_key"}},
	}}
)
