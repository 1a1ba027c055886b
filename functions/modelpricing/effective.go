package modelpricing

import (
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route/saved"
	"gateway/shared/tenant"
)

// asks are the scopes of which a caller needs one to see its effective prices.
var asks = []string{"completions.write", "models.list", "virtual_keys.read", "providers.read"}

// priceRoute returns the price of a model for the caller. With a key, prices and multipliers of
// its organization apply, and for a saved provider also those of its integration.
func priceRoute(b *pricing.Book) admin.Route {
	return admin.Route{
		Method: "GET", Path: "/model-configs/pricing/{provider}/{model}", Name: "getModelPrice", Public: true, Welcomes: true,
		Doc: "Read the price of a model; encode a slash in its name as %2F. With an API key it is the caller's effective price, with the prices and multipliers of the organization and, for a saved provider (@slug), of its integration.",
		Query: []admin.Field{
			{Name: "workspace_id", Type: admin.String, Doc: "Workspace of the saved provider, for organization keys: id or slug."},
			{Name: "mode", Type: admin.String, Doc: "Service mode; some models have different prices for it.", Enum: []string{pricing.Standard, pricing.Batch, pricing.Flex, pricing.Priority, pricing.Fast}},
			{Name: "region", Type: admin.String, Doc: "Region of the provider, if the price depends on it.", Max: 100},
			{Name: "input_tokens", Type: admin.Integer, Min: 0, Max: 1_000_000_000, Doc: "Input tokens of the request, if the price depends on its size."},
			{Name: "quality", Type: admin.String, Doc: "Quality of images, or resolution tier of an input video.", Max: 100},
			{Name: "size", Type: admin.String, Doc: "Size of images or a video, such as 1024x1024.", Max: 100},
		},
		Answer: schemaOfPrice(map[string]any{
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
	if c.Caller.Scope.Org == "" || !c.Caller.HasAny(asks) {
		if own {
			return at, notFound()
		}
		return at, nil
	}
	if err := place(c); err != nil {
		return at, err
	}
	if own {
		if err := admin.PlaceByName(c, provider.KindProvider, slug, "provider"); err != nil {
			return at, err
		}
	}
	if own && c.Scope.Workspace == "" {
		return at, fault.Invalid("workspace_id", "is required with an organisation key: the id or slug of the workspace that @%s is in", fault.Clip(slug, 100))
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
