package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/fault/hint"
)

// Type is the JSON type of a parameter.
type Type uint8

// The types of parameters.
const (
	Text       Type = iota + 1
	Integer         // an integer
	Number          //
	Flag            // a boolean
	Texts           // a list of strings
	Listed          // a list of strings, or one comma-separated string
	Object          // an object, or its JSON text
	Pattern         // a JavaScript regular expression without flags
	Replaced        // a pattern, or /pattern/flags
	Schema          // a JSON Schema, draft 2020-12
	URL             // address of a host that the gateway may call
	Headers         // names of client headers to forward
	TextOrList      // a string, or a list of strings
	Mapped          // secret mappings of credentials
	Anything
)

// Param is a parameter of a check.
type Param struct {
	Name     string
	Type     Type
	Required bool
	// Min and Max limit characters, entries and values. If Max is zero, the limit of the type
	// applies.
	Min, Max int64
	Enum     []string // allowed values of a string, or of the entries of a list
	Default  any
	Members  []Param // of an Object; further fields are allowed
}

// Phase is when a check runs.
type Phase uint8

// The phases: before the request, after the response, both.
const (
	Before Phase = 1 << iota
	After
	Both = Before | After
)

// Category states what a check needs to run.
type Category string

// The categories.
const (
	Basic  Category = "basic"  // needs only the request or the response
	Remote Category = "remote" // calls a host of the customer
	Model  Category = "model"  // calls the gateway's text classifiers
	Vendor Category = "vendor" // calls a vendor with the customer's credentials
)

// Check is a row of the table: the names of a check, when it runs, and its parameters.
type Check struct {
	ID       string
	Aliases  []string
	Phase    Phase
	Category Category
	// Mutates is set if the check can change texts.
	Mutates bool
	Params  []Param
	Doc     string
	// validate validates combinations of parameters that are individually valid. Fields are
	// relative to the parameters.
	validate func(params map[string]json.RawMessage) []fault.Detail
}

// Parameters of many checks.
var (
	not     = Param{Name: "not", Type: Flag, Default: false}
	redact  = Param{Name: "redact", Type: Flag, Default: false}
	anyOf   = Param{Name: "operator", Type: Text, Enum: []string{"any", "all", "none"}, Default: "any"}
	allOf   = Param{Name: "operator", Type: Text, Enum: []string{"any", "all", "none"}, Default: "all"}
	failing = Param{Name: "failOnError", Type: Flag, Default: false}
	scope   = Param{Name: "scope", Type: Text, Enum: []string{"last_message", "all_messages", "system", "tool_arguments", "tool_results", "reasoning"}, Default: "last_message"}
	soft    = Param{Name: "soft_deny_200", Type: Flag, Default: false}
	forward = Param{Name: "forwardHeaders", Type: Headers}
)

// maxTimeout is the longest timeout of a check in milliseconds.
const maxTimeout = 60_000

// timeout returns the timeout parameter.
func timeout(standard int64) Param {
	return Param{Name: "timeout", Type: Integer, Min: 1, Max: maxTimeout, Default: standard}
}

// required returns p as a required parameter.
func required(p Param) Param { p.Required = true; return p }

// Parameters returns all parameters of the check, including those of its category.
func (c *Check) Parameters() []Param {
	out := slices.Clone(c.Params)
	for _, p := range c.shared() {
		if !slices.ContainsFunc(out, func(o Param) bool { return o.Name == p.Name }) {
			out = append(out, p)
		}
	}
	return out
}

func (c *Check) shared() []Param {
	switch c.Category {
	case Remote:
		return []Param{failing, scope, soft, forward, timeout(3000)}
	case Model:
		return []Param{failing, scope, soft, timeout(5000)}
	case Vendor:
		return []Param{failing, scope, soft, forward, credentialsParam(c.ID), mappings, timeout(5000)}
	}
	return []Param{failing, scope, soft}
}

// Find returns the check with an id or alias.
func Find(id string) (*Check, bool) {
	c, ok := byID[id]
	return c, ok
}

// Table returns all checks in order.
func Table() []*Check { return all }

var (
	all  = slices.Concat(basicChecks, requestChecks, remoteChecks, modelChecks, localChecks, vendorChecks)
	byID = func() map[string]*Check {
		m := map[string]*Check{}
		for _, c := range all {
			for _, id := range append([]string{c.ID}, c.Aliases...) {
				m[id] = c
			}
		}
		return m
	}()
)

// similarIDs returns the end of a message about an unknown check: the nearest one, or the checks
// of the same plugin.
func similarIDs(id string) string {
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	if meant := hint.DidYouMean(id, ids); meant != "" {
		return meant
	}
	plugin, _, _ := strings.Cut(id, ".")
	var out, plugins []string
	for _, c := range all {
		own, _, _ := strings.Cut(c.ID, ".")
		if own == plugin {
			out = append(out, c.ID)
		}
		if !slices.Contains(plugins, own+".*") {
			plugins = append(plugins, own+".*")
		}
	}
	if len(out) == 0 {
		out = plugins
	}
	return "; there are " + strings.Join(out, ", ")
}

// credentials lists the credentials of checks or vendors: names separated by spaces. After a
// name, ! marks a required one, @ an address, and = a choice of values separated by |. A name
// followed by a colon is the field that contains the credentials.
var credentials = map[string]string{
	"acuvity":          "apiKey!",
	"akto":             "apiKey! apiDomain!",
	"alibaba-cloud-ai": "accessKeyId! accessKeySecret! regionId",
	"aporia":           "apiKey! apiEndpoint@",
	"azure":            "contentSafety: " + azureCredentials,
	"azure.pii":        "pii: " + azureCredentials,
	"bedrock":          "awsAccessKeyId awsSecretAccessKey awsSessionToken awsRegion awsAuthType=accessKey|assumedRole awsRoleArn awsExternalId customHost@",
	"cato":             "apiKey! apiBase@",
	"crowdstrike-aidr": "baseUrl!@ apiKey!",
	"exa":              "apiKey!",
	"f5-guardrails":    "apiKey! calypsoUrl@",
	"javelin":          "apiKey! application! domain!",
	"lakera":           "apiKey! apiBase@",
	"lasso":            "apiKey! apiEndpoint@",
	"mistral":          "apiKey!",
	"pangea":           "domain! apiKey!",
	"panw-prisma-airs": "AIRS_API_KEY!",
	"patronus":         "apiKey!",
	"pillar":           "apiKey!",
	"promptsecurity":   "apiDomain! apiKey!",
	"qualifire":        "apiKey!",
	"sydelabs":         "apiKey!",
	"tavily":           "apiKey!",
	"walledai":         "apiKey!",
	"zscaler":          "apiKey zscalerApiKey baseUrl@",
}

const azureCredentials = "resourceName! apiKey azureAuthMode=apiKey|entra|managed clientId clientSecret tenantId customHost@"

// credentialsParam returns the parameter with the credentials of a check. It is optional, because a
// guardrail in a config can have credentials for all its checks.
func credentialsParam(id string) Param {
	vendor, _, _ := strings.Cut(id, ".")
	p := Param{Name: "credentials", Type: Object}
	spec, ok := credentials[id]
	if !ok {
		spec = credentials[vendor]
	}
	outer, inner, nested := strings.Cut(spec, ": ")
	if nested {
		spec = inner
	}
	for _, name := range words(spec) {
		m := Param{Type: Text, Max: 16_384}
		name, choice, _ := strings.Cut(name, "=")
		if choice != "" {
			m.Enum = strings.Split(choice, "|")
		}
		if name, ok = strings.CutSuffix(name, "@"); ok {
			m.Type, m.Max = URL, 2048
		}
		m.Name, m.Required = strings.CutSuffix(name, "!")
		p.Members = append(p.Members, m)
	}
	if nested {
		p.Members = []Param{{Name: outer, Type: Object, Required: true, Members: p.Members}}
	}
	return p
}

// MaskChecks returns a copy of checks with their secrets masked, for storing and showing, and
// whether they have any. Secrets are credentials, headers for a customer's host, and every
// field with the name of a secret. A value that is already masked is rejected, because it would
// be stored as the secret.
func MaskChecks(checks []Applied) (masked []Applied, found bool, bad []fault.Detail) {
	m := &masker{}
	masked = slices.Clone(checks)
	for i := range masked {
		out := make(map[string]json.RawMessage, len(checks[i].Parameters))
		for name, raw := range checks[i].Parameters {
			out[name] = m.member(checks[i].ID, name, raw, fmt.Sprintf("[%d].parameters.%s", i, name))
		}
		masked[i].Parameters = out
	}
	return masked, m.Found, m.Bad
}

type masker struct {
	audit.Texts
}

// secretParams are parameters that are secret entirely.
var secretParams = []string{"credentials", "headers", "secret"}

// isDocumented reports whether the table describes a parameter: then it is not a secret, whatever its
// name.
func isDocumented(check, name string) bool {
	c, ok := Find(check)
	return ok && slices.ContainsFunc(c.Parameters(), func(p Param) bool { return p.Name == name })
}

func (m *masker) member(check, name string, raw json.RawMessage, path string) json.RawMessage {
	all := slices.Contains(secretParams, name)
	if !all && isDocumented(check, name) {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	had := m.Found
	m.Found = false
	if all || audit.SecretName(name) {
		v = m.Mask(v, path)
	} else {
		v = m.maskValue(v, path)
	}
	changed := m.Found
	m.Found = had || changed
	if !changed {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}

// maskValue masks every field with the name of a secret.
func (m *masker) maskValue(v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if audit.SecretName(k) {
				v[k] = m.Mask(e, path+"."+k)
			} else {
				v[k] = m.maskValue(e, path+"."+k)
			}
		}
	case []any:
		for i, e := range v {
			v[i] = m.maskValue(e, fmt.Sprintf("%s[%d]", path, i))
		}
	}
	return v
}
