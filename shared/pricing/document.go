package pricing

import (
	"encoding/json"
	"math/bits"
)

// wireNames are the names of classes in documents of prices. Other classes are below
// additional_units under their own names.
var wireNames = map[Class]string{
	Input: "request_token", Output: "response_token", CacheRead: "cache_read_input_token", CacheWrite5m: "cache_write_input_token", AudioIn: "request_audio_token",
	AudioOut: "response_audio_token", AudioCacheRead: "cache_read_audio_input_token", Reasoning: "reasoning_token", ImageIn: "request_image_token", ImageOut: "response_image_token",
	ImageCacheRead: "cache_read_image_input_token",
}

var unitNames = map[Class]string{
	CacheWrite30m: "cache_write_30m", CacheWrite1h: "cache_write_1h", CacheWrite12h: "cache_write_12h", WebSearches: "web_search", FileSearches: "file_search", EnterpriseSearches: "enterprise_web_search", MapSearches: "maps", XSearches: "x_search",
	CodeExecutions: "code_execution", AttachmentSearches: "attachment_search", RoutingUnits: "routing_units", InputImages: "input_image", Megapixels: "megapixels", VideoOut: "output_video_token",
	Seconds: "video_seconds", Images: "generated_images", Pages: "search",
}

// Tagged is a price in a document: per unit, in US cents and in US dollars.
type Tagged struct {
	Price json.Number `json:"price"`
	USD   json.Number `json:"price_usd"`
}

// tagged returns a price in femto-dollars as documents show it, exactly.
func tagged(femtos int64) Tagged {
	return Tagged{decimal(femtos, centsPlaces), decimal(femtos, femtoPlaces)}
}

// Document is a model's price in the form that is shown to others.
type Document struct {
	PayAsYouGo map[string]any    `json:"pay_as_you_go"`
	Batch      map[string]Tagged `json:"batch_config,omitempty"`
	Currency   string            `json:"currency"`
	PriceUnit  string            `json:"price_unit"`
	// For a price that applies to a caller: the line that it comes from (see Price.Line) and
	// the version of the list, as records of requests name them.
	Tariff string `json:"tariff,omitempty"`
	Book   string `json:"book,omitempty"`
	Source string `json:"source,omitempty"` // one of Origins
}

// Document shows the price of a model; ok is false if it has none.
func (b *Book) Document(provider, model string) (d Document, ok bool) {
	d, ok = b.Describe(Options{}, func(o Options) (Price, bool) { return b.Price(provider, model, o) })
	d.Tariff, d.Book, d.Source = "", "", ""
	return d, ok
}

// Describe returns the document of a price under the options and, if they name no mode, also in
// batches.
func (b *Book) Describe(o Options, find func(Options) (Price, bool)) (d Document, ok bool) {
	p, ok := find(o)
	if !ok {
		return d, false
	}
	d = Document{PayAsYouGo: map[string]any{}, Currency: "USD", PriceUnit: PriceUnit, Tariff: p.line, Book: b.Version(), Source: b.index().origin(p.line)}
	units := map[string]Tagged{}
	for set := p.has; set != 0; set &= set - 1 {
		c := Class(bits.TrailingZeros64(set))
		at := tagged(p.rate[c])
		if name, plain := wireNames[c]; plain {
			d.PayAsYouGo[name] = at
		} else if name, known := unitNames[c]; known {
			units[name] = at
		} else {
			units[c.String()] = at
		}
	}
	if p.byMinute {
		units["minute"] = tagged(p.minute)
	}
	if len(units) > 0 {
		d.PayAsYouGo["additional_units"] = units
	}
	if o.Mode != "" {
		return d, true
	}
	o.Mode = Batch
	if batch, ok := find(o); ok {
		d.Batch = batch.unlike(&p)
	}
	return d, true
}

// unlike are the rates that differ from those of another price.
func (p *Price) unlike(other *Price) (out map[string]Tagged) {
	for set := p.has; set != 0; set &= set - 1 {
		c := Class(bits.TrailingZeros64(set))
		if name, plain := wireNames[c]; plain && p.rate[c] != other.rate[c] {
			if out == nil {
				out = map[string]Tagged{}
			}
			out[name] = tagged(p.rate[c])
		}
	}
	return out
}
