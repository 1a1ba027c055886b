package admin

import (
	"encoding/json"
	"fmt"
	"slices"
)

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
