package relay

import (
	"bytes"
	"encoding/json"
	"strconv"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/wire"
)

// resourceName starts the names of models that are resources.
var resourceName = []byte(`"models/`)

// OpenAIModels converts a list of models to the OpenAI format. Providers list them under data or
// models, as objects with an id or a name, or as plain objects.
func OpenAIModels(body []byte, p *provider.Provider) ([]byte, error) {
	var in struct {
		Data   []map[string]json.RawMessage `json:"data"`
		Models []map[string]json.RawMessage `json:"models"`
	}
	err := json.Unmarshal(body, &in)
	if err != nil {
		err = json.Unmarshal(body, &in.Data) // some providers return a bare array
	}
	if err != nil {
		return nil, fault.Newf(fault.InvalidProviderResponse, "", "Invalid response received from %s", p.ID)
	}
	out := []byte(`{"object":"list","data":[`)
	for i, m := range append(in.Data, in.Models...) {
		id := m["id"]
		if id == nil {
			if id = m["name"]; bytes.HasPrefix(id, resourceName) {
				id = append([]byte{'"'}, id[len(resourceName):]...)
			}
		}
		if id == nil {
			continue
		}
		if out[len(out)-1] != '[' && i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"id":`...)
		out = append(out, id...)
		out = append(out, `,"object":"model","created":`...)
		if n, err := wire.ScanInt(m["created"], "created"); len(m["created"]) > 0 && err == nil {
			out = strconv.AppendInt(out, n, 10)
		} else {
			out = append(out, '0')
		}
		out = append(out, `,"owned_by":`...)
		if owner := m["owned_by"]; wire.KindOf(owner) == wire.KindString {
			out = append(out, owner...)
		} else {
			out = wire.AppendJSONString(out, p.ID)
		}
		out = append(out, '}')
	}
	out = append(out, `],"provider":`...)
	out = wire.AppendJSONString(out, p.ID)
	return append(out, '}'), nil
}
