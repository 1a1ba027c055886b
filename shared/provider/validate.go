package provider

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"

	"gateway/shared/fault"
)

// ValidateConfigurations checks the key and the configurations of an integration: every
// field that p needs is present and has its form, and no other name is used. mapped names
// the fields that secret mappings fill at request time: "key" and "configurations.<field>".
// The caller checks hosts against the egress rules. All errors are returned at once, sorted
// by field.
func (p *Provider) ValidateConfigurations(key string, cfg map[string]any, mapped ...string) []fault.Detail {
	v := validation{p: p, cfg: cfg, mapped: mapped}
	if key == "" && !slices.Contains(mapped, "key") && v.needed(p.Key) && cfg["is_key_required"] != false && !p.keyless(cfg) {
		v.add("key", "is required by "+p.ID)
	}
	if key != "" && !printable(key) {
		v.add("key", "must not contain spaces or control characters")
	}
	for name, value := range cfg {
		v.value(name, value)
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		if v.needed(f.Need) && v.get(f) == "" && !slices.Contains(mapped, "configurations."+f.Name) {
			v.add("configurations."+f.Name, "is required by "+p.ID)
		}
	}
	if p.Base == "" && text(cfg, "custom_host") == "" {
		v.add("configurations.custom_host", "is required by "+p.ID+", which has no public address")
	}
	sort.SliceStable(v.details, func(i, j int) bool { return v.details[i].Field < v.details[j].Field })
	return v.details
}

type validation struct {
	p       *Provider
	cfg     map[string]any
	mapped  []string
	details []fault.Detail
}

func (v *validation) add(field, message string) {
	v.details = append(v.details, fault.Detail{Field: field, Message: message})
}

// get is the value of f under its name or an alias, as text.
func (v *validation) get(f *Field) string {
	for _, name := range append([]string{f.Name}, f.Aliases...) {
		switch value := v.cfg[name].(type) {
		case nil:
		case []any:
			if len(value) > 0 {
				return "list"
			}
		default:
			s, _ := asText(name, value)
			return s
		}
	}
	return ""
}

// needed reads a Need rule: "", "always", "field=a|b". A mode that is not given counts as
// the first of its values.
func (v *validation) needed(need string) bool {
	if need == "" || need == always {
		return need == always
	}
	name, values, _ := strings.Cut(need, "=")
	f, ok := v.p.Field(name)
	if !ok {
		return false
	}
	mode := v.get(f)
	if mode == "" && len(f.Values) > 0 {
		mode = f.Values[0]
	}
	return slices.Contains(strings.Split(values, "|"), mode)
}

func (v *validation) value(name string, value any) {
	path := "configurations." + name
	f, known := v.p.Field(name)
	switch {
	case value == nil:
		return
	case name == "custom_host":
		if s, ok := value.(string); !ok || !baseURL(s) {
			v.add(path, BaseURL.rule())
		}
		return
	case name == "custom_headers":
		v.headers(path, value)
		return
	case !known:
		v.add(path, "is not a field of "+v.p.ID+"; known are "+strings.Join(v.names(), ", "))
		return
	}
	switch f.Form {
	case List:
		deployments, err := asDeployments(path, value)
		if err != nil {
			e := fault.From(err)
			v.add(e.Field, e.Message)
		} else if len(deployments) == 0 {
			v.add(path, "must have at least one deployment")
		}
		return
	case JSONObject:
		if !isObject(value) {
			v.add(path, f.Form.rule())
		}
		return
	case Flag, TextOrFlag:
		if _, ok := value.(bool); ok {
			return
		}
	}
	s, ok := value.(string)
	switch {
	case !ok:
		v.add(path, "must be a string")
	case s == "":
	case !f.Form.fits(s):
		v.add(path, f.Form.rule())
	case strings.ContainsFunc(s, control) && !f.Secret:
		v.add(path, Text.rule())
	case f.Values != nil && !slices.Contains(f.Values, s):
		v.add(path, "must be one of "+strings.Join(f.Values, ", "))
	}
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

func isObject(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return true
	case string:
		var object map[string]any
		return json.Unmarshal([]byte(value), &object) == nil && object != nil
	}
	return false
}

// unsettable are headers that the gateway or HTTP itself sets.
var unsettable = []string{"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "keep-alive", "proxy-authorization", "proxy-connection", "expect"}

func (v *validation) headers(path string, value any) {
	headers, err := asTextMap(path, value)
	if err != nil {
		e := fault.From(err)
		v.add(e.Field, TextMap.rule())
		return
	}
	for name, text := range headers {
		lower := strings.ToLower(name)
		switch {
		case !headerName(name), slices.Contains(unsettable, lower), strings.HasPrefix(lower, headerPrefix):
			v.add(path+"."+name, "is a header that cannot be sent to a provider")
		case strings.ContainsFunc(text, control):
			v.add(path+"."+name, Text.rule())
		}
	}
}

func (v *validation) names() []string {
	var names []string
	for _, f := range v.p.Fields {
		names = append(names, f.Name)
	}
	return append(names, "custom_host", "custom_headers")
}
