// Package modelpricing is the family of prices and parameters of models, which
// anybody may read.
package modelpricing

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route/saved"
	"gateway/shared/tenant"
)

// New makes the family.
func New(b *pricing.Book) admin.Family {
	return admin.Family{
		Name: "modelpricing", Doc: "Prices of models, in US cents per unit, and suggested parameters.", Rejections: &plain,
		Routes: []admin.Route{
			priceRoute(b),
			{Method: "GET", Path: "/pricing/{file}", Name: "getProviderPrices", Doc: "Read the prices of all models of a provider: {provider}.json.", Public: true,
				Response: admin.Schema{"type": "object", "additionalProperties": admin.Closed(map[string]admin.Schema{"pricing_config": priceSchema})},
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
			{Method: "GET", Path: "/model-configs/general/{provider}/{model}", Name: "getModelParameters", Doc: "Read the suggested parameters of a model. They do not restrict requests.", Public: true, Response: generalSchema,
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
				Response: admin.Schema{"type": "object", "additionalProperties": generalSchema},
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

// plain is how rejections of prices look: {"error": text}.
var plain = admin.Rejections{
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

// files are what forms may offer for the models of each provider: suggestions, by
// which no request is ever rejected or changed.
//
//go:embed models/*.json
var files embed.FS

// parameter is one that a form may offer.
type parameter struct {
	Key     string `json:"key"`
	Default any    `json:"defaultValue,omitempty"`
	Min     any    `json:"minValue,omitempty"`
	Max     any    `json:"maxValue,omitempty"`
	Type    string `json:"type"`
	Options []any  `json:"options,omitempty"`
}

// listed is a model of a file.
type listed struct {
	Type      string      // chat, text, responses, embedding, image...
	Supported []string    // tools, image, cache_control, json_mode...
	Params    []parameter // specific to the model; they precede the provider's
	Without   []string    // keys of the provider's parameters that it does not have
	MaxOutput any         // the most tokens of a response
	Roles     []string    // roles of messages, where they differ from the provider's
	IsDefault bool
}

// file describes a provider: Params and Roles apply to all its chat models.
type file struct {
	Params []parameter
	Roles  []string
	Models map[string]listed
}

// open reads the file of a provider; none is false.
func open(provider string) (f file, known bool, err error) {
	raw, err := files.ReadFile("models/" + provider + ".json")
	if err != nil {
		return f, false, nil // a name that is no file's
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, false, fmt.Errorf("modelpricing: models of %s: %w", provider, err)
	}
	return f, true, nil
}

// document returns the description of a model.
func (f *file) document(m listed) admin.Members {
	params, roles := slices.Clone(m.Params), m.Roles
	talks := m.Type == "chat" || m.Type == "text" || m.Type == "responses"
	if talks {
		for _, p := range f.Params {
			own := slices.ContainsFunc(params, func(q parameter) bool { return q.Key == p.Key })
			if own || slices.Contains(m.Without, p.Key) {
				continue
			}
			if m.MaxOutput != nil && (p.Key == "max_tokens" || p.Key == "max_completion_tokens") {
				p.Max = m.MaxOutput
			}
			params = append(params, p)
		}
		if roles == nil {
			roles = f.Roles
		}
	}
	return admin.Members{
		"params": orEmpty(params), "type": admin.Members{"primary": m.Type, "supported": orEmpty(m.Supported)},
		"messages": admin.Members{"options": orEmpty(roles)}, "disablePlayground": !talks, "isDefault": m.IsDefault,
	}
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

var (
	texts = func(example ...any) admin.Schema {
		return admin.Schema{"type": "array", "items": admin.Schema{"type": "string"}, "example": example}
	}
	generalSchema = admin.Closed(map[string]admin.Schema{
		"params": {"type": "array", "items": map[string]any{
			"type": "object", "required": []string{"key", "type"}, "additionalProperties": false, "properties": map[string]any{
				"key": map[string]any{"type": "string", "example": "temperature"}, "type": map[string]any{"type": "string", "example": "number"},
				"defaultValue": map[string]any{"example": 0.8}, "minValue": map[string]any{"type": "number", "example": 0}, "maxValue": map[string]any{"type": "number", "example": 2},
				"options": map[string]any{"type": "array", "example": []any{"low", "medium", "high"}},
			}}},
		"type":     admin.Closed(map[string]admin.Schema{"primary": {"type": "string", "example": "chat"}, "supported": texts("tools", "image", "json_mode")}),
		"messages": admin.Closed(map[string]admin.Schema{"options": texts("system", "user", "assistant")}), "disablePlayground": {"type": "boolean"}, "isDefault": {"type": "boolean"},
	})
)

// readScopes are the scopes of which a caller needs one to see its effective prices.
var readScopes = []string{"completions.write", "models.list", "virtual_keys.read", "providers.read"}

// priceRoute returns the price of a model for the caller. With a key, prices and multipliers of
// its organization apply, and for a saved provider also those of its integration.
func priceRoute(b *pricing.Book) admin.Route {
	return admin.Route{
		Method: "GET", Path: "/model-configs/pricing/{provider}/{model}", Name: "getModelPrice", Public: true, OptionalAuth: true,
		Doc: "Read the price of a model; encode a slash in its name as %2F. With an API key it is the caller's effective price, with the prices and multipliers of the organization and, for a saved provider (@slug), of its integration.",
		Query: []admin.Field{
			{Name: "workspace_id", Type: admin.String, Doc: "Workspace of the saved provider, for organization keys: id or slug."},
			{Name: "mode", Type: admin.String, Doc: "Service mode; some models have different prices for it.", Enum: []string{pricing.Standard, pricing.Batch, pricing.Flex, pricing.Priority, pricing.Fast}},
			{Name: "region", Type: admin.String, Doc: "Region of the provider, if the price depends on it.", Max: 100},
			{Name: "input_tokens", Type: admin.Integer, Min: 0, Max: 1_000_000_000, Doc: "Input tokens of the request, if the price depends on its size."},
			{Name: "quality", Type: admin.String, Doc: "Quality of images, or resolution tier of an input video.", Max: 100},
			{Name: "size", Type: admin.String, Doc: "Size of images or a video, such as 1024x1024.", Max: 100},
		},
		Response: schemaOfPrice(map[string]any{
			"tariff": map[string]any{"type": "string", "example": "openai/gpt-4o", "description": "Line of the price list, as in logs."},
			"book":   map[string]any{"type": "string", "description": "Version of the price list, followed by + and the version of the published sheet."},
			"source": map[string]any{"type": "string", "enum": pricing.Origins(), "description": "Source of the price: the built-in list, the published sheet, the organization or the integration."},
		}),
		Do: func(c *admin.Call) (any, error) {
			b := b.Current()
			at, err := pricesOf(c, b)
			if err != nil {
				return nil, err
			}
			o := pricing.Options{
				Mode: c.Query.Text("mode"), Region: c.Query.Text("region"), ContextTokens: c.Query.Int("input_tokens"),
				Quality: c.Query.Text("quality"), Size: c.Query.Text("size"), At: c.Now,
			}
			d, ok := b.Describe(o, func(o pricing.Options) (pricing.Price, bool) {
				_, p, ok := at.Find(c.Param("model"), o)
				return p, ok
			})
			if !ok {
				return nil, notFound()
			}
			return d, nil
		},
	}
}

// pricesOf are the prices that hold for the caller at the provider that the path names.
func pricesOf(c *admin.Call, b *pricing.Book) (at saved.Prices, err error) {
	at = saved.Prices{List: b, Of: c.Param("provider")}
	slug, own := strings.CutPrefix(at.Of, "@")
	if c.Caller.Scope.Org == "" || !c.Caller.HasAny(readScopes) {
		if own {
			return at, notFound()
		}
		return at, nil
	}
	if err := place(c); err != nil {
		return at, err
	}
	if own {
		if err := admin.MoveByName(c, provider.KindProvider, slug, "provider"); err != nil {
			return at, err
		}
	}
	if own && c.Scope.Workspace == "" {
		return at, fault.Invalid("workspace_id", "is required with an organization key: the id or slug of the workspace that @%s is in", fault.Clip(slug, 100))
	}
	view, err := resource.NewLoader(c.Resources).Fresh(c.Context, c.Scope.Org)
	if err != nil {
		return at, err
	}
	org, err := tenant.LoadSettings(c.Context, view, c.Scope)
	if err != nil {
		return at, err
	}
	at.By = org.Prices()
	if !own {
		return at, nil
	}
	at.Saved, err = saved.Load(c.Context, view, c.Scope, slug, c.Now)
	if err != nil {
		if fault.From(err).Status() < 500 {
			return at, notFound()
		}
		return at, err
	}
	at.Of = at.Saved.Provider.ID
	return at, nil
}

// place takes the call to the workspace that it names.
func place(c *admin.Call) error {
	named := c.Query.Text("workspace_id")
	if named == "" {
		return nil
	}
	rec, ok, err := c.Workspace(named)
	if err != nil {
		return err
	}
	if !ok {
		return notFound()
	}
	c.Scope.Workspace = rec.ID
	return nil
}
