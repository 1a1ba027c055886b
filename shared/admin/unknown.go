package admin

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/fault/hint"
)

// lenientHeader lets a request contain fields and query parameters that its route does not
// know. They are ignored. The setting api_settings.lenient of an organization does the same
// for all requests.
const lenientHeader = "X-Gateway-Lenient"

// organisationID may be sent to every route, as workspace_id may.
const organisationID = "organisation_id"

// foreign reports whether the protocol of the route is defined elsewhere, such as OAuth, SCIM
// and OTLP. Those protocols ignore what they do not know.
func (r *Route) foreign() bool {
	return r.Rejections != nil || r.Unparsed || slices.Contains(r.Consumes, formType)
}

// rejectUnknown adds the fields of the bodies and the query parameters that the route does
// not know to p, unless the request or the organization is lenient. Public routes may have
// any query: browsers and identity providers call them with parameters of their own.
func rejectUnknown(c *Call, bodies []map[string]json.RawMessage, p *problems) error {
	if c.Route.foreign() {
		return nil
	}
	var found problems
	for i, body := range bodies {
		below := ""
		if c.body.isList() {
			below = "[" + strconv.Itoa(i) + "]"
		}
		for _, name := range sortedKeys(body) {
			var text string
			_ = json.Unmarshal(body[name], &text) // other values repeat no path variable
			if !declares(c, name, text, c.Route.Body) && !echoes(c, name) {
				found.add(join(below, clip(name)), "%s", unknownName("field", name, sendable(c.Route)))
			}
		}
	}
	if !c.Route.Public {
		query, err := url.ParseQuery(c.Request.URL.RawQuery)
		if err != nil {
			return nil // checkQuery rejects it
		}
		for _, name := range sortedKeys(query) {
			if !declares(c, name, query.Get(name), c.Route.Query) && !repeats(c, name) {
				found.add(clip(name), "%s", unknownName("query parameter", name, append(fieldNames(c.Route.Query), workspaceID)))
			}
		}
	}
	if len(found.list) == 0 {
		return nil
	}
	lenient, err := c.lenient()
	if err == nil && !lenient {
		p.list = append(found.list, p.list...)
	}
	return err
}

// lenient reports whether unknown names are ignored.
func (c *Call) lenient() (bool, error) {
	if sent := c.Request.Header.Get(lenientHeader); sent != "" {
		lenient, err := strconv.ParseBool(sent)
		if err != nil {
			return false, fault.Invalid(strings.ToLower(lenientHeader), "must be true or false")
		}
		return lenient, nil
	}
	if c.handler.deps.Lenient == nil || c.Caller.Scope.Org == "" {
		return false, nil
	}
	return c.handler.deps.Lenient(c.Context, c.Caller.Scope.Org)
}

// declares reports whether a name belongs to the fields of the route, may be sent to every
// route, or repeats the value of a path variable, as generated clients do.
func declares(c *Call, name, value string, fields []Field) bool {
	if name == workspaceID || name == organisationID || slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
		return true
	}
	for _, v := range c.params {
		if v == value && value != "" {
			return true
		}
	}
	return false
}

// echoes reports whether a field of an update is one that a GET of the same path responds
// with, so that its response can be sent back.
func echoes(c *Call, name string) bool {
	if c.Route.Method != "PUT" && c.Route.Method != "PATCH" || c.reads == nil {
		return false
	}
	return hasProperty(c.reads.responseSchema(), name)
}

// repeats reports whether a query parameter of an update is one of the GET of the same path,
// so that clients may send the response of a read to its address.
func repeats(c *Call, name string) bool {
	return (c.Route.Method == "PUT" || c.Route.Method == "PATCH") && c.reads != nil && slices.ContainsFunc(c.reads.Query, func(f Field) bool { return f.Name == name })
}

// hasProperty reports whether objects of a schema may have the property.
func hasProperty(s Schema, name string) bool {
	switch properties := s["properties"].(type) {
	case map[string]Schema:
		if _, ok := properties[name]; ok {
			return true
		}
	case map[string]any:
		if _, ok := properties[name]; ok {
			return true
		}
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		parts, _ := s[word].([]any)
		for _, part := range parts {
			if of, ok := part.(Schema); ok && hasProperty(of, name) {
				return true
			}
		}
	}
	return false
}

// sendable lists the names of the fields that a body of the route can have.
func sendable(r *Route) []string {
	m := creating
	if r.BodyMode != CompleteBody {
		m = updating
	}
	var out []string
	for i := range r.Body {
		if m.wanted(&r.Body[i]) {
			out = append(out, r.Body[i].Name)
		}
	}
	return out
}

// unknownName is the message for a name that is not known: it suggests the nearest known
// one, or else lists them.
func unknownName(what, name string, known []string) string {
	text := "unknown " + what + " " + strconv.Quote(clip(name))
	if meant := hint.DidYouMean(name, known); meant != "" {
		return text + meant
	}
	if len(known) == 0 {
		return text
	}
	if more := len(known) - maxNamed; more > 0 {
		known = append(known[:maxNamed:maxNamed], "and "+strconv.Itoa(more)+" more")
	}
	return text + "; known are " + strings.Join(known, ", ")
}
