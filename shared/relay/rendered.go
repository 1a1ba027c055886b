package relay

import (
	"encoding/json"

	"gateway/shared/fault"
)

// rendered responds with the body that a saved prompt renders; no provider is called.
func rendered(c *call) error {
	body, err := json.Marshal(map[string]any{"success": true, "data": json.RawMessage(c.body.Filled.Body)})
	if err != nil {
		return fault.Internal(err)
	}
	sendJSON(c, body, nil)
	return nil
}
