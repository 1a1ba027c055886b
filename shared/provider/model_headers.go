package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/seal"
)

// sealedModelHeaders begins the names under which the custom headers of single models are
// sealed; the slug of the model follows.
const sealedModelHeaders = "model_headers/"

// SealModels seals the custom headers of models into rec and stores their masked form. It
// also seals headers that an earlier version stored unsealed, and removes headers of
// deleted models and of models without a host. The error is a *fault.Fault.
func (i *Integration) SealModels(ctx context.Context, s seal.Sealer, rec *resource.Record) error {
	masks := make(map[string]map[string]string, len(i.ModelHeaders))
	for n := range i.Models {
		m := &i.Models[n]
		if m.Configurations == nil {
			continue
		}
		if len(m.Configurations.CustomHeaders) == 0 {
			if kept := i.ModelHeaders[m.Slug]; kept != nil {
				masks[m.Slug] = kept
			}
			continue
		}
		plain, err := json.Marshal(m.Configurations.CustomHeaders)
		if err != nil {
			return fault.Internal(err)
		}
		if err := rec.SetSecret(ctx, s, sealedModelHeaders+m.Slug, plain); err != nil {
			return fault.Unavailable(err)
		}
		masks[m.Slug] = i.MaskedHeaders(m)
		host := *m.Configurations // the value may be shared
		host.CustomHeaders = nil
		m.Configurations = &host
	}
	for _, name := range rec.SecretNames() {
		if slug, ok := strings.CutPrefix(name, sealedModelHeaders); ok && masks[slug] == nil {
			if err := rec.SetSecret(ctx, s, name, nil); err != nil {
				return fault.Unavailable(err)
			}
		}
	}
	if i.ModelHeaders = masks; len(masks) == 0 {
		i.ModelHeaders = nil
	}
	return nil
}

// MaskedHeaders returns the custom headers of a model as reads show them.
func (i *Integration) MaskedHeaders(m *IntegrationModel) map[string]string {
	if m.Configurations == nil || len(m.Configurations.CustomHeaders) == 0 {
		return i.ModelHeaders[m.Slug]
	}
	masked := make(map[string]string, len(m.Configurations.CustomHeaders))
	for name, value := range m.Configurations.CustomHeaders {
		masked[name] = audit.Mask(value)
	}
	return masked
}

// OpenModelHeaders moves the custom headers of models out of opened secrets. Those that an
// earlier version stored unsealed are in the model itself.
func (i *Integration) OpenModelHeaders(secrets map[string][]byte) (map[string]map[string]string, error) {
	out := make(map[string]map[string]string)
	for name, plain := range secrets {
		slug, ok := strings.CutPrefix(name, sealedModelHeaders)
		if !ok {
			continue
		}
		delete(secrets, name)
		var headers map[string]string
		if err := json.Unmarshal(plain, &headers); err != nil {
			return nil, fmt.Errorf("provider: custom headers of the model %s: %w", slug, err)
		}
		out[slug] = headers
	}
	for n := range i.Models {
		if host := i.Models[n].Configurations; host != nil && len(host.CustomHeaders) > 0 {
			out[i.Models[n].Slug] = host.CustomHeaders
		}
	}
	return out, nil
}
