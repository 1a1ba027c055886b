package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// isList reports whether the body is a list of objects, where the route takes one.
func (c *Call) isList() bool {
	return c.Route.Each > 0 && bytes.HasPrefix(bytes.TrimSpace(c.raw), []byte("["))
}

// parseEach reads a body that is a list.
func (c *Call) parseEach() ([]map[string]json.RawMessage, error) {
	if !c.isList() {
		return nil, nil
	}
	if err := wire.CheckStrict(c.raw, maxBodyDepth); err != nil {
		return nil, err
	}
	if err := checkSurrogates(c.raw); err != nil {
		return nil, err
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(c.raw, &entries); err != nil {
		return nil, fault.Invalid("", "the body is not valid JSON")
	}
	if len(entries) == 0 || len(entries) > c.Route.Each {
		return nil, fault.Invalid("", "the body must be one object, or a list of 1 to %d, has %d", c.Route.Each, len(entries))
	}
	out := make([]map[string]json.RawMessage, len(entries))
	for i, raw := range entries {
		if raw[0] != '{' || json.Unmarshal(raw, &out[i]) != nil {
			return nil, fault.Invalid(fmt.Sprintf("[%d]", i), "must be an object")
		}
	}
	return out, nil
}

// checkEach checks the objects of a list and gives the members that are ignored.
func (c *Call) checkEach(list []map[string]json.RawMessage, p *problems) (ignored []string) {
	for i, raw := range list {
		var of problems
		v, more := checkFields(raw, c.Route.Body, creating, &of)
		p.addAll(fmt.Sprintf("[%d]", i), of.list)
		c.Each, ignored = append(c.Each, v), append(ignored, more...)
	}
	slices.Sort(ignored)
	return slices.Compact(ignored)
}
