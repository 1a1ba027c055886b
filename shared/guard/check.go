package guard

import (
	"encoding/json"
	"slices"
	"strings"

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
