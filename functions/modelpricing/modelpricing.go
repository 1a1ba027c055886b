// Package modelpricing is the family of prices and parameters of models, which
// anybody may read.
package modelpricing

import (
	"maps"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// New makes the family.
func New(b *pricing.Book) admin.Family {
	return admin.Family{
		Name: "modelpricing", Doc: "Prices of models, in US cents per unit, and suggested parameters.", Refusals: &plain,
		Routes: []admin.Route{
			priceRoute(b),
			{Method: "GET", Path: "/pricing/{file}", Name: "getProviderPrices", Doc: "Read the prices of all models of a provider: {provider}.json.", Public: true,
				Answer: admin.Schema{"type": "object", "additionalProperties": admin.Closed(map[string]admin.Schema{"pricing_config": priceSchema})},
				Do: func(c *admin.Call) (any, error) {
					provider, ok := strings.CutSuffix(c.Param("file"), ".json")
					b := b.Current()
					models := b.Models(provider)
					if !ok || len(models) == 0 {
						return nil, notFound()
					}
					out := admin.Members{}
					for _, model := range models {
						if d, priced := b.Document(provider, model); priced {
							out[model] = admin.Members{"pricing_config": d}
						}
					}
					return out, nil
				}},
			{Method: "GET", Path: "/model-configs/general/{provider}/{model}", Name: "getModelParameters", Doc: "Read the suggested parameters of a model. They do not restrict requests.", Public: true, Answer: generalSchema,
				Do: func(c *admin.Call) (any, error) {
					f, _, err := open(c.Param("provider"))
					if err != nil {
						return nil, err
					}
					m, ok := f.Models[c.Param("model")]
					if !ok {
						return nil, notFound()
					}
					return f.document(m), nil
				}},
			{Method: "GET", Path: "/general/{file}", Name: "getProviderParameters", Doc: "Read the suggested parameters of all models of a provider: {provider}.json.", Public: true,
				Answer: admin.Schema{"type": "object", "additionalProperties": generalSchema},
				Do: func(c *admin.Call) (any, error) {
					provider, ok := strings.CutSuffix(c.Param("file"), ".json")
					f, known, err := open(provider)
					if err != nil {
						return nil, err
					}
					if !ok || !known {
						return nil, notFound()
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
	Body: func(_ *admin.Call, f *fault.Fault) any {
		var each []string // the fields that are wrong, all of them
		for _, d := range f.Details {
			each = append(each, d.Field+" "+d.Message)
		}
		if len(each) > 0 {
			return admin.Members{"error": strings.Join(each, "; ")}
		}
		return admin.Members{"error": strings.TrimPrefix(f.Field+" "+f.Message, " ")}
	},
}

// notFound is the error for missing and inaccessible models.
func notFound() error { return fault.New(fault.NotFound, "", "Model not found") }

var (
	tagged = admin.Closed(map[string]admin.Schema{
		"price":     {"type": "number", "description": "US cents per token; of additional_units per unit, such as an image or a search."},
		"price_usd": {"type": "number", "description": "The exact price in US dollars."},
	})
	priceSchema = schemaOfPrice(nil)
)

// schemaOfPrice is a document of a price, with more members.
func schemaOfPrice(more map[string]any) admin.Schema {
	members := map[string]any{
		"pay_as_you_go": map[string]any{"type": "object", "properties": map[string]any{"additional_units": map[string]any{"type": "object", "additionalProperties": tagged}}, "additionalProperties": tagged},
		"batch_config":  map[string]any{"type": "object", "additionalProperties": tagged},
		"currency":      map[string]any{"type": "string", "const": "USD", "description": "The currency of all prices; price is in hundredths of it."},
		"price_unit":    map[string]any{"type": "string", "const": pricing.PriceUnit, "description": "The unit of price: US cents per token, of additional_units per unit."},
	}
	maps.Copy(members, more)
	return admin.Schema{"type": "object", "required": []string{"pay_as_you_go", "currency", "price_unit"}, "additionalProperties": false, "properties": members}
}
