package relay

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/provider/modelmeta"
	"gateway/shared/wire"
)

// resourceName starts the names of models that are resources.
var resourceName = []byte(`"models/`)

// OpenAIModels converts a list of models to the OpenAI format. Providers list them under data or
// models, as objects with an id or a name, or as plain objects. Their further fields are kept, since
// the provider's own clients require them.
func OpenAIModels(body []byte, p *provider.Provider) ([]byte, error) {
	listed, err := modelsIn(body, p)
	if err != nil {
		return nil, err
	}
	out := []byte(`{"object":"list","data":[`)
	for i, m := range listed {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"id":`...)
		out = append(out, m["id"]...)
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
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if name != "id" && name != "object" && name != "created" && name != "owned_by" {
				out = append(wire.AppendJSONString(append(out, ','), name), ':')
				out = append(out, m[name]...)
			}
		}
		out = append(out, '}')
	}
	out = append(out, `],"provider":`...)
	out = wire.AppendJSONString(out, p.ID)
	return append(out, '}'), nil
}

// modelsIn returns the entries of a provider's list that have an id or a name, each with its id.
func modelsIn(body []byte, p *provider.Provider) ([]map[string]json.RawMessage, error) {
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
	return slices.DeleteFunc(append(in.Data, in.Models...), func(m map[string]json.RawMessage) bool {
		if m["id"] != nil {
			return false
		}
		id := m["name"]
		if id == nil {
			return true
		}
		if bytes.HasPrefix(id, resourceName) {
			id = append([]byte{'"'}, id[len(resourceName):]...)
		}
		m["id"] = id
		return false
	}), nil
}

// GoogleModels converts a list of models to Google's format, or, if the path names one, that model
// of the list.
func GoogleModels(body []byte, p *provider.Provider, path string) ([]byte, error) {
	listed, err := modelsIn(body, p)
	if err != nil {
		return nil, err
	}
	want, err := url.PathUnescape(path)
	if err != nil {
		return nil, fault.Invalid("model", "the path has a percent sign without two hexadecimal digits")
	}
	out := []byte(`{"models":[`)
	for i, m := range listed {
		var id string
		if err := json.Unmarshal(m["id"], &id); err != nil {
			return nil, fault.Newf(fault.InvalidProviderResponse, "", "Invalid response received from %s", p.ID)
		}
		if want != "" {
			if id == want {
				return AppendGoogleModel(nil, p.ID, id, id), nil
			}
			continue
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = AppendGoogleModel(out, p.ID, id, id)
	}
	if want != "" {
		return nil, NoModel(want)
	}
	return append(out, `]}`...), nil
}

// NoModel is the fault of a model that no list has.
func NoModel(id string) error {
	return fault.Newf(fault.NotFound, "model", "models/%s is not in the list of models; GET /v1/models lists them", id)
}

// AppendGoogleModel appends a model in Google's format: id is its name for clients, name that of
// the provider.
func AppendGoogleModel(out []byte, provider, id, name string) []byte {
	out = wire.AppendJSONString(append(out, `{"name":`...), "models/"+id)
	out = wire.AppendJSONString(append(out, `,"displayName":`...), name)
	if k := modelmeta.Of(provider, name); k != nil {
		if k.Window > 0 {
			out = strconv.AppendInt(append(out, `,"inputTokenLimit":`...), k.Window, 10)
		}
		if k.Output > 0 {
			out = strconv.AppendInt(append(out, `,"outputTokenLimit":`...), k.Output, 10)
		}
	}
	if strings.Contains(name, "embed") {
		return append(out, `,"supportedGenerationMethods":["embedContent"]}`...)
	}
	return append(out, `,"supportedGenerationMethods":["generateContent","countTokens"]}`...)
}
