package responses

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// hosted is the billing data of a response object besides its usage: the tier that served
// it and the tools that the provider ran.
type hosted struct {
	tier             string
	context          string // how much of the web was searched: low, medium, high
	searches, files  int64  // calls in the output
	images           int64
	reportedSearches int64 // of tool_usage, which takes precedence over counted calls; -1: not given
	imageModel       string
	image            pricing.Usage // tokens of image_gen
	sizes            []chat.ItemSize
}

// defaultImageModel is the model that draws if a tool does not name one.
const defaultImageModel = "gpt-image-1"

func newHosted() hosted { return hosted{reportedSearches: -1} }

// member reads a field of a response object other than its output.
func (h *hosted) member(key []byte, d *wire.Decoder) bool {
	switch string(key) {
	case "service_tier":
		h.tier = optString(d)
	case "tools":
		if d.Kind() == wire.KindArray {
			for range d.Array {
				h.tool(d)
			}
		}
	case "tool_usage":
		if d.Kind() == wire.KindObject {
			for tool := range d.Object {
				h.used(string(tool), d)
			}
		}
	default:
		return false
	}
	return true
}

func (h *hosted) tool(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	kind, model, context := "", "", ""
	for key := range d.Object {
		switch string(key) {
		case "type":
			kind = optString(d)
		case "model":
			model = optString(d)
		case "search_context_size":
			context = optString(d)
		}
	}
	switch {
	case kind == "image_generation" && model != "":
		h.imageModel = model
	case context != "":
		h.context = context
	}
}

func (h *hosted) used(tool string, d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	switch tool {
	case "image_gen":
		openai.ReadUsage(d, &h.image)
	case "web_search":
		for key := range d.Object {
			if string(key) == "num_requests" && d.Kind() == wire.KindNumber {
				h.reportedSearches = d.Int()
			}
		}
	}
}

// items counts the calls of hosted tools in an output, and reads the sizes of its items.
func (h *hosted) items(output []byte) {
	d := wire.NewDecoder(output)
	if d.Kind() != wire.KindArray {
		return
	}
	h.sizes = nil
	for range d.Array {
		if d.Kind() != wire.KindObject {
			d.Skip()
			continue
		}
		kind, action, id, start := "", "", "", d.Offset()
		for key := range d.Object {
			switch string(key) {
			case "type":
				kind = optString(d)
			case "action":
				action = actionOf(d)
			case "id":
				id = optString(d)
			}
		}
		switch kind {
		case "message", "function_call", "custom_tool_call": // a token has at least one byte
			h.sizes = append(h.sizes, chat.ItemSize{ID: id, Tokens: int64(d.Offset() - start)})
		case "reasoning":
			h.sizes = append(h.sizes, chat.ItemSize{ID: id, Tokens: -1})
		}
		h.item(kind, action)
	}
}

func actionOf(d *wire.Decoder) (kind string) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return ""
	}
	for key := range d.Object {
		if string(key) == "type" {
			kind = optString(d)
		}
	}
	return kind
}

// item counts an item of the output. Opening a page that a search has found is free.
func (h *hosted) item(kind, action string) {
	switch kind {
	case "web_search_call":
		if action == "" || action == "search" {
			h.searches++
		}
	case "file_search_call":
		h.files++
	case "image_generation_call":
		h.images++
	}
}

// bill adds the data to the usage and to the other billed items.
func (h *hosted) bill(u *pricing.Usage, s *chat.PriceFacts) {
	s.Mode, s.SearchContext, s.Extra = pricing.ModeOf(h.tier), h.context, nil
	if !u.IsReported() {
		return
	}
	searches := h.searches
	if h.reportedSearches >= 0 {
		searches = h.reportedSearches
	}
	if searches > 0 {
		u.Set(pricing.WebSearches, searches)
	}
	if h.files > 0 {
		u.Set(pricing.FileSearches, h.files)
	}
	if !h.image.IsReported() && h.images == 0 {
		return
	}
	drawn := h.image
	if out, present := drawn.Get(pricing.Output); present { // the output of such a model is images
		drawn.Set(pricing.Output, 0)
		drawn.Add(pricing.ImageOut, out)
	}
	if h.images > 0 {
		drawn.Set(pricing.Images, h.images)
	}
	model := h.imageModel
	if model == "" {
		model = defaultImageModel
	}
	s.Extra = append(s.Extra, chat.Line{Model: model, Mode: pricing.Standard, Usage: drawn})
}
