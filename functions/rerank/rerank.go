// Package rerank is the family that orders documents by a query and reads documents (OCR).
// Providers with a shape of their own are reached through a translator; providers of
// OpenAI's shape get the body as it is.
package rerank

import (
	"gateway/shared/dialect/openai"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{
		{
			Method: "POST", Path: "/rerank", Endpoint: "rerank", BodyMode: relay.Unified, Scope: "completions.write",
			Operation: provider.Rerank, Check: openai.CheckRerank, Meter: openai.MeterRerank, NoOutput: true, CustomHost: true, UnitsOf: ranked,
		},
		{
			Method: "POST", Path: "/ocr", Endpoint: "ocr", BodyMode: relay.Unified, Scope: "completions.write",
			Operation: provider.OCR, Check: openai.CheckOCR, Meter: openai.MeterOCR, NoOutput: true, CustomHost: true, UnitsOf: read,
		},
	}
}

// documentsOfUnit are what one search unit takes.
const documentsOfUnit = 100

// ranked is what a rerank may cost: search units, or the tokens of its body.
func ranked(_ relay.Get, bytes int64) (d relay.Units) {
	d.Most.Set(pricing.Pages, bytes/(3*documentsOfUnit)+1) // a document takes at least three bytes: "",
	d.Assumed.Set(pricing.Pages, 1)
	d.Assumed.Set(pricing.Input, bytes/4+1)
	d.Assumed.Estimated = true
	return d
}

// maxPages bounds the pages of one document.
const maxPages = 1000

func read(relay.Get, int64) (d relay.Units) {
	d.Most.Set(pricing.Pages, maxPages)
	d.Assumed.Set(pricing.Pages, 1)
	d.Assumed.Estimated = true
	return d
}
