package guard

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// URLCheck is the egress rule for hosts that users configure.
type URLCheck func(raw, field string) (*url.URL, error)

// maxBad is the number of reported faults.
const maxBad = 50

// ParseChecks parses the checks of a guardrail to be saved. It reports all faults with their
// paths relative to the list: [0].parameters.rule.
func ParseChecks(raw json.RawMessage, check URLCheck) ([]Applied, []fault.Detail) {
	r := &reader{url: check}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, []fault.Detail{{Message: "must be a list of checks"}}
	}
	if len(list) == 0 || len(list) > MaxChecks {
		return nil, []fault.Detail{{Message: fmt.Sprintf("must have 1 to %d checks", MaxChecks)}}
	}
	out := make([]Applied, len(list))
	for i, one := range list {
		r.applied(&out[i], one, fmt.Sprintf("[%d]", i))
	}
	if len(r.bad) > 0 {
		return nil, r.bad
	}
	return out, nil
}

type reader struct {
	url    URLCheck
	bad    []fault.Detail
	inline bool            // the guardrail is in a config
	filled map[string]bool // fields that secrets set, by path
}

//go:noinline
func (r *reader) add(path, format string, args ...any) {
	if len(r.bad) < maxBad {
		r.bad = append(r.bad, fault.Detail{Field: path, Message: fmt.Sprintf(format, args...)})
	}
}

func (r *reader) applied(a *Applied, raw json.RawMessage, path string) {
	in := objectOf(raw)
	if in == nil {
		r.add(path, "must be an object with id and parameters")
		return
	}
	a.Enabled = true
	r.into(in, "name", path, &a.Name, "a string")
	if len(a.Name) > 255 {
		r.add(path+".name", "must have at most 255 characters")
	}
	r.into(in, "is_enabled", path, &a.Enabled, "true or false")
	if r.into(in, "forward_headers", path, &a.Forward, "a list of names of headers") {
		r.headers(a.Forward, path+".forward_headers")
	}
	if !r.into(in, "id", path, &a.ID, "a string") {
		if in["id"] == nil || string(in["id"]) == "null" {
			r.add(path+".id", "is required: the id of a check, such as default.regexMatch")
		}
		return
	}
	row, ok := Find(a.ID)
	if !ok && !IsForeign(a.ID) {
		r.add(path+".id", "is not a check%s", similarIDs(a.ID))
		return
	}
	at := path + ".parameters"
	if p, ok := in["parameters"]; ok && string(p) != "null" && objectOf(p) == nil {
		r.add(at, "must be an object")
		return
	}
	a.Parameters = objectOf(in["parameters"])
	if a.Parameters == nil {
		a.Parameters = map[string]json.RawMessage{}
	}
	if ok { // the maker of an unknown check validates its parameters
		a.ID = row.ID
		r.parameters(row, a.Parameters, at)
	}
}

// into decodes a field. It reports whether the value has the right type.
func (r *reader) into(in map[string]json.RawMessage, name, path string, to any, form string) bool {
	raw, ok := in[name]
	if !ok || string(raw) == "null" {
		return false
	}
	if json.Unmarshal(raw, to) != nil {
		r.add(path+"."+name, "must be %s", form)
		return false
	}
	return true
}

// parameters validates the parameters of a check; unknown ones are faults.
func (r *reader) parameters(row *Check, in map[string]json.RawMessage, path string) {
	before := len(r.bad)
	for _, m := range Mappings(in) {
		if r.filled == nil {
			r.filled = map[string]bool{}
		}
		r.filled[path+"."+m.TargetField] = true
	}
	for _, p := range row.Parameters() {
		raw, ok := in[p.Name]
		if ok && string(raw) == "null" {
			delete(in, p.Name)
			ok = false
		}
		if !ok {
			if p.Required {
				r.add(path+"."+p.Name, "is required: %s%s", p.form(), p.among())
			}
			continue
		}
		if p.Type == Mapped {
			r.mappings(row, raw, path+"."+p.Name)
			continue
		}
		r.value(&p, raw, path+"."+p.Name)
	}
	r.bad = append(r.bad, row.unknown(in, path)...)
	if row.validate == nil || len(r.bad) > before {
		return
	}
	for _, d := range row.validate(in) {
		r.add(path+"."+d.Field, "%s", d.Message)
	}
}

// unknown returns a fault for each unknown parameter.
func (c *Check) unknown(in map[string]json.RawMessage, path string) (bad []fault.Detail) {
	for _, name := range c.Unknown(in) {
		if len(bad) < maxBad {
			bad = append(bad, fault.Detail{Field: path + "." + clip(name), Message: "is not a parameter of " + c.ID + "; use " + strings.Join(c.names(), ", ")})
		}
	}
	return bad
}

// MissingParameters returns a fault for each required parameter that is missing or empty, and for a
// combination of parameters with which the check cannot run.
func (c *Check) MissingParameters(in map[string]json.RawMessage) (bad []fault.Detail) {
	for _, p := range c.Params {
		if v := string(in[p.Name]); p.Required && (v == "" || v == "null" || v == `""`) {
			bad = append(bad, fault.Detail{Field: p.Name, Message: "is required: " + p.form() + p.among()})
		}
	}
	if c.validate != nil && bad == nil {
		bad = c.validate(in)
	}
	return bad
}

// Unknown returns the names of unknown parameters. Guardrails that were stored before they were
// rejected may have some.
func (c *Check) Unknown(in map[string]json.RawMessage) (unknown []string) {
	known := c.names()
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// names returns the names of the parameters of the check.
func (c *Check) names() (names []string) {
	for _, p := range c.Parameters() {
		names = append(names, p.Name)
	}
	return names
}

// UnknownParameters returns the unknown parameters of checks of a guardrail in a config, with
// paths relative to the guardrail. Nothing else of a config in a request is validated: other
// faults are reported when the check runs.
func UnknownParameters(raw json.RawMessage) (bad []fault.Detail) {
	in := objectOf(raw)
	var list []json.RawMessage
	_ = json.Unmarshal(in["checks"], &list)
	for i, one := range list {
		if a := readUnchecked(one); a.ID != "" {
			if row, ok := Find(a.ID); ok {
				bad = append(bad, row.unknown(a.Parameters, fmt.Sprintf("checks[%d].parameters", i))...)
			}
		}
	}
	h := new(Hook)
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if slices.Contains(reservedMembers, name) {
			continue
		}
		h.readShortForm(name, in[name], new(reader), false)
		a := &h.Checks[len(h.Checks)-1]
		if row, ok := Find(a.ID); ok {
			bad = append(bad, row.unknown(a.Parameters, name)...)
		}
	}
	return bad
}

// form describes the expected value of a parameter.
func (p *Param) form() string {
	switch p.Type {
	case Text:
		return "a string"
	case Integer:
		return "a whole number"
	case Number:
		return "a number"
	case Flag:
		return "true or false"
	case Texts, Listed, TextOrList, Headers:
		return "a list of strings"
	case Object:
		return "an object"
	case Pattern, Replaced:
		return "a regular expression of JavaScript"
	case Schema:
		return "a JSON Schema"
	case URL:
		return "an address that begins with https://"
	}
	return "a value"
}

// among lists the values that a required parameter may have.
func (p *Param) among() string {
	if len(p.Enum) == 0 {
		return ""
	}
	return ", of " + strings.Join(p.Enum, ", ")
}

func (r *reader) value(p *Param, raw json.RawMessage, path string) {
	switch p.Type {
	case Text, Pattern, Replaced, URL:
		var s string
		if json.Unmarshal(raw, &s) != nil {
			r.add(path, "must be %s", p.form())
			return
		}
		r.text(p, s, path)
	case Integer, Number:
		r.number(p, raw, path)
	case Flag:
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			r.add(path, "must be true or false")
		}
	case Texts, Listed, TextOrList, Headers:
		r.texts(p, raw, path)
	case Object:
		r.object(p, raw, path)
	case Schema:
		if objectOf(raw) == nil {
			r.add(path, "must be an object: a JSON Schema")
		} else if _, err := CompileSchema(raw); err != nil {
			r.add(path, "%s", err.Error())
		}
	}
}

// maxText is the default length limit of texts in bytes.
const maxText = 65_536

func (r *reader) text(p *Param, s, path string) {
	most := p.Max
	if most == 0 {
		most = maxText
	}
	n := int64(len([]rune(s)))
	var err error
	switch {
	case len(p.Enum) > 0 && !slices.Contains(p.Enum, s):
		r.add(path, "must be one of %s", strings.Join(p.Enum, ", "))
		return
	case n == 0 && (p.Min > 0 || p.Required):
		r.add(path, "must not be empty")
		return
	case n < p.Min || n > most:
		r.add(path, "must have %d to %d characters", p.Min, most)
		return
	}
	switch p.Type {
	case Pattern:
		_, err = CompilePattern(s)
	case Replaced:
		_, _, err = CompileReplaced(s)
	case URL:
		if _, wrong := r.url(s, path); wrong != nil {
			r.add(path, "%s", fault.From(wrong).Message)
		}
	}
	if err != nil {
		r.add(path, "%s", err.Error())
	}
}

func (r *reader) number(p *Param, raw json.RawMessage, path string) {
	var x float64
	if json.Unmarshal(raw, &x) != nil || p.Type == Integer && x != float64(int64(x)) {
		r.add(path, "must be %s", p.form())
		return
	}
	if x < float64(p.Min) || p.Max != 0 && x > float64(p.Max) {
		r.add(path, "must be %d to %d", p.Min, p.Max)
	}
}

// maxEntries is the default limit of lists and objects.
const maxEntries = 1000

func (r *reader) texts(p *Param, raw json.RawMessage, path string) {
	var list []string
	var one string
	if json.Unmarshal(raw, &list) != nil {
		if p.Type != Listed && p.Type != TextOrList || json.Unmarshal(raw, &one) != nil {
			r.add(path, "must be %s", p.form())
			return
		}
		list = listOf(raw)
		if p.Type == TextOrList {
			list = []string{one}
		}
	}
	if int64(len(list)) < p.Min || len(list) > maxEntries {
		r.add(path, "must have %d to %d entries", p.Min, maxEntries)
		return
	}
	if p.Type == Headers {
		r.headers(list, path)
		return
	}
	for i, s := range list {
		switch at := fmt.Sprintf("%s[%d]", path, i); {
		case len(p.Enum) > 0 && !slices.Contains(p.Enum, s):
			r.add(at, "must be one of %s", strings.Join(p.Enum, ", "))
		case s == "":
			r.add(at, "must not be empty")
		case len(s) > maxText:
			r.add(at, "must have at most %d bytes", maxText)
		}
	}
}

// object also accepts the JSON text of an object.
func (r *reader) object(p *Param, raw json.RawMessage, path string) {
	in := objectOf(raw)
	if in == nil {
		var s string
		if json.Unmarshal(raw, &s) != nil || wire.CheckStrict([]byte(s), wire.MaxDepth) != nil || objectOf([]byte(s)) == nil {
			r.add(path, "must be an object")
			return
		}
		in = objectOf([]byte(s))
	}
	if int64(len(in)) < p.Min || len(in) > maxEntries {
		r.add(path, "must have %d to %d members", p.Min, maxEntries)
	}
	for i := range p.Members {
		m := &p.Members[i]
		if v, ok := in[m.Name]; ok && string(v) != "null" {
			r.value(m, v, path+"."+m.Name)
		} else if m.Required && !r.filled[path+"."+m.Name] {
			r.add(path+"."+m.Name, "is required: %s%s", m.form(), m.among())
		}
	}
}

// neverForwarded are client headers that no check may see.
var neverForwarded = words(`authorization x-api-key ocp-apim-subscription-key proxy-authorization cookie set-cookie host content-length connection keep-alive
	proxy-authenticate proxy-connection te trailer transfer-encoding upgrade metadata metadata-flavor x-aws-ec2-metadata-token x-aws-ec2-metadata-token-ttl-seconds x-google-metadata-request`)

// gatewayHeaders are the gateway's headers that may be forwarded.
var gatewayHeaders = words("x-gateway-trace-id x-gateway-span-id")

// IsNeverForwarded reports whether no check may see or set a header, given in lower case: headers
// of credentials, of connections and of the gateway.
func IsNeverForwarded(name string) bool {
	return slices.Contains(neverForwarded, name) || strings.HasPrefix(name, "x-gateway-") && !slices.Contains(gatewayHeaders, name)
}

func (r *reader) headers(names []string, path string) {
	if len(names) > 100 {
		r.add(path, "must have at most 100 entries")
		return
	}
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			r.add(at, "must be the name of a header in small letters, digits and dashes")
		case IsNeverForwarded(name):
			r.add(at, "is a header that is never forwarded")
		}
	}
}

// objectOf returns the fields of an object, or nil for any other value.
func objectOf(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// listOf returns the strings of a list, or of one comma-separated string.
func listOf(raw json.RawMessage) []string {
	var list []string
	var one string
	if len(raw) == 0 || json.Unmarshal(raw, &list) == nil {
		return list
	}
	if json.Unmarshal(raw, &one) != nil {
		return nil
	}
	for _, part := range strings.Split(one, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
