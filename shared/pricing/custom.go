package pricing

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// Custom is the price that an integration sets for one of its models (pricing_config). It
// replaces the book's price entirely: a class that it does not name is charged as its nearest
// relative, not at the book's rate.
//
// It may be one price, or several that are limited in time, in hours of the day or to long
// prompts.
type Custom struct {
	rates rates // of the one that is not limited, or the first one
	parts []part
}

// part is a price that applies under a condition.
type part struct {
	when  period
	over  int64 // applies when the prompt has more tokens than this; 0: always
	rates rates
}

// centsScale turns cents into femto-dollars: 1 cent is 10^13 of them.
const centsScale = 13

// wireClass maps the price keys of the wire form to classes. A general key comes before a
// special one that overrides it.
var wireClass = []struct {
	key   string
	class Class
}{
	{"request_token", Input}, {"request_text_token", Input},
	{"response_token", Output}, {"response_text_token", Output},
	{"cache_read_input_token", CacheRead}, {"cache_read_text_input_token", CacheRead}, {"cached_text_input_token", CacheRead},
	{"cache_write_input_token", CacheWrite5m}, {"cache_write_text_input_token", CacheWrite5m},
	{"request_audio_token", AudioIn}, {"response_audio_token", AudioOut}, {"cache_read_audio_input_token", AudioCacheRead},
	{"reasoning_token", Reasoning},
	{"request_image_token", ImageIn}, {"response_image_token", ImageOut},
	{"cache_read_image_input_token", ImageCacheRead}, {"cached_image_input_token", ImageCacheRead},
}

// wireUnit maps the names of additional_units to classes.
var wireUnit = map[string]Class{
	"web_search": WebSearches, "search": WebSearches, "enterprise_web_search": EnterpriseSearches, "maps": MapSearches,
	"file_search": FileSearches, "x_search": XSearches, "code_execution": CodeExecutions, "attachment_search": AttachmentSearches,
	"routing_units": RoutingUnits, "generated_images": Images, "image_1k": Images, "image_token": ImageOut, "input_image": InputImages,
	"megapixels": Megapixels, "video_seconds": Seconds, "output_video_token": VideoOut, "embedding_image_token": ImageIn,
	"embedding_text_token": Input, "cache_write_1h": CacheWrite1h, "thinking_token": Reasoning,
	"request_audio_token": AudioIn, "response_audio_token": AudioOut,
}

// object is one level of a JSON value that is being read; it collects faults.
type object struct {
	field   string
	members map[string]json.RawMessage
	errs    *[]fault.Detail
}

func readObject(raw []byte, field string, errs *[]fault.Detail) object {
	o := object{field: field, errs: errs}
	if json.Unmarshal(raw, &o.members) != nil || o.members == nil {
		*errs = append(*errs, fault.Detail{Field: field, Message: "must be an object"})
	}
	return o
}

func (o *object) fail(key, message string) {
	*o.errs = append(*o.errs, fault.Detail{Field: o.field + "." + key, Message: message})
}

// take gives a member and removes it; null counts as absent.
func (o *object) take(key string) (json.RawMessage, bool) {
	raw, ok := o.members[key]
	delete(o.members, key)
	return raw, ok && string(raw) != "null"
}

// done rejects the members that were not taken.
func (o *object) done() {
	keys := make([]string, 0, len(o.members))
	for key := range o.members {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		o.fail(key, "is not a known key")
	}
}

// price reads {"price": cents}.
func (o *object) price(key string) (int64, bool) {
	raw, ok := o.take(key)
	if !ok {
		return 0, false
	}
	inner := readObject(raw, o.field+"."+key, o.errs)
	number, ok := inner.take("price")
	if !ok {
		if inner.members != nil {
			inner.fail("price", "is required: US cents per unit, a number of at least 0")
		}
		return 0, false
	}
	femtos, _, err := parseDecimal(string(number), centsScale)
	if err != nil {
		inner.fail("price", "must be a number of US cents from 0 to 900000")
		return 0, false
	}
	if usd, ok := inner.take("price_usd"); ok {
		if n, exact, err := parseDecimal(string(usd), femtoPlaces); err != nil || exact && n != femtos {
			inner.fail("price_usd", "must be the price in US dollars, a hundredth of price; it can be left out")
		}
	}
	inner.done()
	return femtos, true
}

// ParseCustom reads a pricing_config: {type: "static", currency: "USD", pay_as_you_go:
// {request_token: {price}, ..., image: {quality: {size: {price}}}, additional_units: {unit:
// {price}}}, fixed_cost: {request: {price}, response: {price}}}. Prices are US cents per
// unit; fractions of a femto-dollar are rounded half up. field names the value in the
// errors.
func ParseCustom(raw []byte, field string) (*Custom, []fault.Detail) {
	var errs []fault.Detail
	c := new(Custom)
	if list := listOf(raw); list != nil {
		return parseCustoms(list, field)
	}
	top := readObject(raw, field, &errs)
	for key, want := range map[string]string{"type": `"static"`, "currency": `"USD"`, "price_unit": `"` + PriceUnit + `"`} {
		if v, ok := top.take(key); ok && string(v) != want {
			top.fail(key, "must be "+want)
		}
	}
	pay, ok := top.take("pay_as_you_go")
	if ok {
		c.readRates(readObject(pay, field+".pay_as_you_go", &errs))
	} else if top.members != nil {
		top.fail("pay_as_you_go", "is required: the prices by kind of unit")
	}
	if fixed, ok := top.take("fixed_cost"); ok {
		o := readObject(fixed, field+".fixed_cost", &errs)
		request, first := o.price("request")
		response, second := o.price("response")
		if first || second {
			c.rates.set(Requests, request+min(response, math.MaxInt64-request))
		}
		o.done()
	}
	p := part{when: top.period(), over: top.tokens("above_tokens")}
	top.done()
	if len(errs) == 0 && c.rates.has == 0 && len(c.rates.tables) == 0 {
		top.fail("pay_as_you_go", "must name at least one price")
	}
	if errs != nil {
		return nil, errs
	}
	c.rates.complete()
	if p.when.limited() || p.over > 0 {
		p.rates = c.rates
		c.parts = []part{p}
	}
	return c, nil
}

func (c *Custom) readRates(o object) {
	for _, w := range wireClass {
		if femtos, ok := o.price(w.key); ok {
			c.rates.set(w.class, femtos)
		}
	}
	if raw, ok := o.take("image"); ok {
		qualities := readObject(raw, o.field+".image", o.errs)
		for quality, sizes := range qualities.members {
			s := readObject(sizes, qualities.field+"."+quality, o.errs)
			for _, size := range keysOf(s.members) {
				if femtos, ok := s.price(size); ok {
					c.rates.tables = append(c.rates.tables, choice{Images, quality + ":" + size, femtos})
				}
			}
		}
		c.rates.perImage = len(c.rates.tables) > 0 && c.rates.has&tokenClasses == 0
	}
	if raw, ok := o.take("additional_units"); ok {
		units := readObject(raw, o.field+".additional_units", o.errs)
		for _, unit := range keysOf(units.members) {
			if class, known := wireUnit[unit]; known {
				if femtos, ok := units.price(unit); ok {
					c.rates.set(class, femtos)
				}
			} else if size, ok := strings.CutPrefix(unit, "web_search_"); ok && strings.HasSuffix(size, "_context") {
				if femtos, ok := units.price(unit); ok {
					c.rates.tables = append(c.rates.tables, choice{WebSearches, strings.TrimSuffix(size, "_context"), femtos})
				}
			}
		}
		units.done()
	}
	o.done()
}

func keysOf(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Depends reports whether the cost of a usage depends on more than the usage, such as the size
// of images.
func (c *Custom) Depends(u Usage) bool {
	depends := func(r *rates) bool {
		return slices.ContainsFunc(r.tables, func(t choice) bool { return u.n[t.class] > 0 })
	}
	return depends(&c.rates) || slices.ContainsFunc(c.parts, func(p part) bool { return depends(&p.rates) })
}

// ownLine replaces the name of a line of the list where an integration has prices of its
// own.
const ownLine = "integration"

// Applies reports whether there is a price under the options.
func (c *Custom) Applies(o Options) bool {
	r, _ := c.at(&o)
	return r != nil
}

// at is the price under the options: of those that apply, the one for the longest prompts,
// then the one that began last. nil: none applies. above is the size of those prompts.
func (c *Custom) at(o *Options) (r *rates, above int64) {
	if len(c.parts) == 0 {
		return &c.rates, 0
	}
	var best *part
	for i := range c.parts {
		p := &c.parts[i]
		switch {
		case !p.when.includes(o.At) || p.over > 0 && o.ContextTokens <= p.over:
		case best == nil || p.over > best.over || p.over == best.over && !p.when.lessThan(&best.when):
			best = p
		}
	}
	if best == nil {
		return nil, 0
	}
	return &best.rates, best.over
}

// Price is the custom price under the options; zero if none applies. Mode and region do not
// change it.
func (c *Custom) Price(o Options) (p Price) {
	if r, above := c.at(&o); r != nil {
		r.resolve(&p, &o)
		p.above = above
	}
	p.line = ownLine
	return p
}

// MaxOverrides bounds the models for which an organization sets prices.
const MaxOverrides = 500

// Overrides are an organization's own prices, which replace those of the list, and its
// multipliers, which apply where an integration has none. Nil changes nothing.
type Overrides struct {
	prices map[string]*Custom // by provider/model
	adjust *Adjustments
}

// ParseOverrides reads prices of models, {"provider/model": pricing_config}, and
// multipliers, {default, request_token, ...}; either may be absent.
func ParseOverrides(models, multiplier json.RawMessage) (*Overrides, []fault.Detail) {
	o := new(Overrides)
	prices, bad := ParseModelPrices(models)
	o.prices = prices
	if isSet(multiplier) {
		adjust, more := ParseMultiplier(multiplier)
		o.adjust, bad = adjust, append(bad, more...)
	}
	if len(bad) > 0 {
		return nil, bad
	}
	if len(o.prices) == 0 && o.adjust == nil {
		return nil, nil
	}
	return o, nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// ParseModelPrices reads {"provider/model": pricing_config}.
func ParseModelPrices(raw json.RawMessage) (map[string]*Custom, []fault.Detail) {
	if !isSet(raw) {
		return nil, nil
	}
	var bad []fault.Detail
	top := readObject(raw, "", &bad)
	if len(top.members) > MaxOverrides {
		return nil, []fault.Detail{{Message: "must have at most 500 models"}}
	}
	out := make(map[string]*Custom, len(top.members))
	for _, name := range keysOf(top.members) {
		if provider, model, ok := strings.Cut(name, "/"); !ok || provider == "" || model == "" || len(name) > 300 || strings.HasPrefix(name, "@") {
			bad = append(bad, fault.Detail{Field: name, Message: "must be provider/model, such as openai/gpt-4o"})
			continue
		}
		own, more := ParseCustom(top.members[name], name)
		bad = append(bad, more...)
		out[name] = own
	}
	return out, bad
}

// ParseMultiplier reads the multipliers of Adjustments as a separate object.
func ParseMultiplier(raw json.RawMessage) (*Adjustments, []fault.Detail) {
	const at = "multiplier"
	whole := slices.Concat([]byte(`{"`+at+`":`), raw, []byte("}"))
	a, bad := ParseAdjustments(whole, "")
	for i := range bad { // the caller knows ".multiplier.default" as "default"
		bad[i].Field = strings.TrimPrefix(strings.TrimPrefix(bad[i].Field, "."+at), ".")
	}
	return a, bad
}

// organisationLine replaces the name of a line of the list for prices of an organization.
const organisationLine = "organisation"

// Price is the price of a model before multipliers: the organization's own, or else the
// book's.
func (v *Overrides) Price(b *Book, provider, model string, o Options) (p Price, ok bool) {
	if v != nil {
		if own, has := v.prices[provider+"/"+model]; has && own.Applies(o) {
			p = own.Price(o)
			p.line = organisationLine + " " + provider + "/" + model
			return p, true
		}
	}
	return b.Price(provider, model, o)
}

// Adjust applies an integration's multipliers, or else the organization's.
func (v *Overrides) Adjust(p Price, of *Adjustments) Price {
	if of == nil && v != nil {
		of = v.adjust
	}
	return of.Apply(p)
}
