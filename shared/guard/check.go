package guard

import (
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// Type is the JSON type of a parameter.
type Type uint8

// The types of parameters.
const (
	Text       Type = iota + 1
	Integer         // a whole number
	Number          //
	Flag            // true or false
	Texts           // a list of texts
	Listed          // a list of texts, or one text with commas
	Object          // an object, or JSON text of one
	Pattern         // a regular expression of JavaScript, without flags
	Replaced        // a pattern, or /pattern/flags
	Schema          // a JSON Schema, draft 2020-12
	URL             // address of a host that the gateway may call
	Headers         // names of client headers that are passed along
	TextOrList      // a text, or a list of texts
	Mapped          // secret mappings of credentials
	Anything
)

// Param is a parameter of a check.
type Param struct {
	Name     string
	Type     Type
	Required bool
	// Min and Max bound characters, entries and values. Max 0: the bound of the type.
	Min, Max int64
	Enum     []string // allowed values of a text, or of the entries of a list
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

// Category is what a check needs to run.
type Category string

// The categories.
const (
	Basic  Category = "basic"  // decided in this process, from the request or the response alone
	Remote Category = "remote" // calls a host that the customer names
	Model  Category = "model"  // asks the gateway's judges of texts
	Vendor Category = "vendor" // asks a vendor, with the customer's credentials
)

// Check is a row of the table: the names of a check, when it runs, and its parameters.
type Check struct {
	ID       string
	Aliases  []string
	Phase    Phase
	Category Category
	// Mutates says that the check changes texts, and not only judges them.
	Mutates bool
	Params  []Param
	Doc     string
	// also reports parameters that do not go together. Each of them is valid by itself.
	// Fields are below the parameters.
	also func(params map[string]json.RawMessage) []fault.Detail
}

// Parameters that many checks take.
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

// maxTimeout limits how long to wait for a check, in milliseconds.
const maxTimeout = 60_000

// timeout returns the parameter of that name.
func timeout(standard int64) Param {
	return Param{Name: "timeout", Type: Integer, Min: 1, Max: maxTimeout, Default: standard}
}

// needed returns a required parameter.
func needed(p Param) Param { p.Required = true; return p }

// Parameters are all parameters of the check, including those that every check of its
// category has.
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
		return []Param{failing, scope, soft, forward, opening(c.ID), mappings, timeout(5000)}
	}
	return []Param{failing, scope, soft}
}

// Find returns the check with an id, or with another of its names.
func Find(id string) (*Check, bool) {
	c, ok := byID[id]
	return c, ok
}

// Table returns all checks, in the order of the table.
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

// near returns the checks of the same plugin, for messages.
func near(id string) []string {
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
		return plugins
	}
	return out
}
