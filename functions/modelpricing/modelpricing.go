// Package modelpricing is the family of prices and parameters of models, which
// anybody may read.
package modelpricing

import (
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// New makes the family.
func New(b *pricing.Book) admin.Family {
	notFound := fault.New(fault.NotFound, "", "Model not found")
	return admin.Family{
		Name: "modelpricing", Doc: "Prices of models, in US cents per unit, and what forms may offer for them.", Refusals: &plain,
		Routes: []admin.Route{
			{Method: "GET", Path: "/model-configs/pricing/{provider}/{model}", Name: "getModelPrice", Doc: "Read the price of a model; a slash in its name is written %2F.", Public: true, Answer: priceSchema,
				Do: func(c *admin.Call) (any, error) {
					d, ok := b.Document(c.Param("provider"), c.Param("model"))
					if !ok {
						return nil, notFound
					}
					return d, nil
				}},
			{Method: "GET", Path: "/pricing/{file}", Name: "getProviderPrices", Doc: "Read the prices of all models of a provider: {provider}.json.", Public: true,
				Answer: admin.Schema{"type": "object", "additionalProperties": admin.Closed(map[string]admin.Schema{"pricing_config": priceSchema})},
				Do: func(c *admin.Call) (any, error) {
					provider, ok := strings.CutSuffix(c.Param("file"), ".json")
					models := b.Models(provider)
					if !ok || len(models) == 0 {
						return nil, notFound
					}
					out := admin.Members{}
					for _, model := range models {
						if d, priced := b.Document(provider, model); priced {
							out[model] = admin.Members{"pricing_config": d}
						}
					}
					return out, nil
				}},
			{Method: "GET", Path: "/model-configs/general/{provider}/{model}", Name: "getModelParameters", Doc: "Read what a form may offer for a model: suggestions, by which no request is refused.", Public: true, Answer: generalSchema,
				Do: func(c *admin.Call) (any, error) {
					f, _, err := open(c.Param("provider"))
					if err != nil {
						return nil, err
					}
					m, ok := f.Models[c.Param("model")]
					if !ok {
						return nil, notFound
					}
					return f.document(m), nil
				}},
			{Method: "GET", Path: "/general/{file}", Name: "getProviderParameters", Doc: "Read what forms may offer for all models of a provider: {provider}.json.", Public: true,
				Answer: admin.Schema{"type": "object", "additionalProperties": generalSchema},
				Do: func(c *admin.Call) (any, error) {
					provider, ok := strings.CutSuffix(c.Param("file"), ".json")
					f, known, err := open(provider)
					if err != nil {
						return nil, err
					}
					if !ok || !known {
						return nil, notFound
					}
					out := admin.Members{}
					for name, m := range f.Models {
						out[name] = f.document(m)
					}
					return out, nil
				}},
		},
	}
}

// plain is how refusals of prices look: {"error": text}.
var plain = admin.Refusals{
	ContentType: "application/json", Schema: admin.Closed(map[string]admin.Schema{"error": {"type": "string"}}),
	Body: func(_ *admin.Call, f *fault.Fault) any { return admin.Members{"error": f.Message} },
}

var (
	tagged      = admin.Closed(map[string]admin.Schema{"price": {"type": "number"}})
	priceSchema = admin.Schema{"type": "object", "required": []string{"pay_as_you_go", "currency"}, "additionalProperties": false, "properties": map[string]any{
		"pay_as_you_go": map[string]any{"type": "object", "properties": map[string]any{"additional_units": map[string]any{"type": "object", "additionalProperties": tagged}}, "additionalProperties": tagged},
		"batch_config":  map[string]any{"type": "object", "additionalProperties": tagged},
		"currency":      map[string]any{"type": "string", "const": "USD"},
	}}
)
