// Package images is the family that makes and changes images.
package images

import (
	"cmp"
	"strconv"
	"strings"

	"gateway/shared/dialect/openai"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// Bounds of forms, in bytes.
const maxForm = 256 << 20

const defaultModel = "dall-e-2"

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{
		{
			Method: "POST", Path: "/images/generations", Endpoint: "imageGenerate", BodyMode: relay.Unified, Scope: "completions.write",
			Operation: provider.ImagesGenerate, Check: openai.CheckImage, Meter: openai.MeterImages, NoOutput: true, Media: true,
			DefaultModel: defaultModel, UnitsOf: demand,
		},
		{
			Method: "POST", Path: "/images/edits", Endpoint: "imageEdit", BodyMode: relay.Multipart, Scope: "completions.write",
			Operation: provider.ImagesEdit, CheckForm: checkEdit, Meter: openai.MeterImages, NoOutput: true, Media: true,
			DefaultModel: defaultModel, UnitsOf: demandOfForm, MaxBody: maxForm,
		},
		{
			Method: "POST", Path: "/images/variations", Endpoint: "imageVariation", BodyMode: relay.Multipart, Scope: "completions.write",
			Operation: provider.ImagesVariation, CheckForm: checkVariation, Meter: openai.MeterImages, NoOutput: true, Media: true,
			DefaultModel: defaultModel, UnitsOf: demandOfForm, MaxBody: maxForm,
		},
	}
}

func checkEdit(f relay.Form) error      { return openai.CheckImageEdit(f) }
func checkVariation(f relay.Form) error { return openai.CheckImageVariation(f) }

// Bounds of tokens, for models that count images in them.
const (
	tokensMade       = 6400 // one image made, at the best quality
	inputImageTokens = 6400 // one image given
	maxInputImages   = 16   // to one edit
)

// demand is what a request for images may cost: they are priced by their number,
// quality and size, or by tokens.
func demand(get relay.Get, _ int64) (d relay.Units) {
	n := max(number(get("n")), 1)
	d.Quality, d.Size = get("quality"), get("size")
	if d.Size == "" {
		d.Size = "1024x1024"
	}
	d.Most.Set(pricing.Images, n)
	d.Most.Set(pricing.ImageOut, n*tokensMade)
	d.Pixels = pixels(get)
	d.Steps = number(get("steps"))
	d.Most.Set(pricing.Megapixels, n*(cmp.Or(d.Pixels, mostPixels)+999_999)/1_000_000)
	d.Assumed.Set(pricing.Images, n)
	d.Assumed.Estimated = true
	return d
}

// mostPixels is the assumed maximum size of an image if the request states none.
const mostPixels = 2_000_000

// maxSide bounds a width and a height, so that no product of them overflows.
const maxSide = 1 << 16

// usualSide is that of an image of which only the other side is stated.
const usualSide = "1024"

// pixels returns how many pixels one image has, by its size or by its sides; zero if the request
// states neither.
func pixels(get relay.Get) int64 {
	width, height, _ := strings.Cut(get("size"), "x")
	if w, h := get("width"), get("height"); w != "" || h != "" {
		width, height = cmp.Or(w, usualSide), cmp.Or(h, usualSide)
	}
	return min(number(width), maxSide) * min(number(height), maxSide)
}

// number reads a positive integer; zero if the text is none.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func demandOfForm(get relay.Get, bytes int64) relay.Units {
	d := demand(get, bytes)
	d.Most.Set(pricing.ImageIn, maxInputImages*inputImageTokens)
	return d
}
