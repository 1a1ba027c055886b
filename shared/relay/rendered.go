package relay

import (
	"encoding/json"

	"gateway/shared/fault"
)

// rendered answers with the body that a saved prompt makes; nobody is asked.
func (c *call) rendered() error {
	body, err := json.Marshal(map[string]any{"success": true, "data": json.RawMessage(c.Filled.Body)})
	if err != nil {
		return fault.Internal(err)
	}
	c.sendJSON(body, nil)
	return nil
}
