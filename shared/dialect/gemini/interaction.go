package gemini

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// MeterInteraction reads what an interaction used: from the object itself, or from the
// event of a stream that holds it. ended: the provider works no more on it.
func MeterInteraction(answer []byte) (m chat.Meter, ended bool) {
	r := interaction{status: "in_progress"}
	d := wire.NewDecoder(answer)
	r.readFrom(d)
	if d.End() != nil {
		return m, false
	}
	m = chat.Meter{Model: r.model, ID: r.id, Finish: r.status, Started: true}
	m.Mode = r.counts.mode
	m.ReportedTotal = r.counts.classes(&m.Usage, r.searches)
	m.Usage = m.Usage.Bounded()
	ended = r.status != "in_progress" && r.status != "queued"
	m.Complete = ended
	return m, ended
}

type interaction struct {
	id, model, status string
	counts            counts
	searches          int64
}

func (r *interaction) readFrom(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "interaction": // of an event
			r.readFrom(d)
		case "id":
			r.id = optString(d)
		case "model":
			r.model = optString(d)
		case "status":
			r.status = optString(d)
		case "service_tier":
			if mode := pricing.ModeOf(optString(d)); mode != "" {
				r.counts.mode = mode
			}
		case "usage":
			r.usage(d)
		}
	}
}

// usage reads the counts, which mean what those of usageMetadata do.
func (r *interaction) usage(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	c := &r.counts
	for key := range d.Object {
		switch string(key) {
		case "total_input_tokens":
			c.prompt.Read(d)
		case "total_cached_tokens":
			c.cached.Read(d)
		case "total_output_tokens":
			c.candidates.Read(d)
		case "total_thought_tokens":
			c.thoughts.Read(d)
		case "total_tool_use_tokens":
			c.toolUse.Read(d)
		case "total_tokens":
			c.total.Read(d)
		case "input_tokens_by_modality":
			byModality(d, &c.audioIn, &c.imageIn)
		case "cached_tokens_by_modality":
			byModality(d, &c.audioCached, &c.imageCached)
		case "output_tokens_by_modality":
			byModality(d, &c.audioOut, &c.imageOut)
		case "grounding_tool_count":
			r.grounded(d)
		}
	}
}

// grounded reads [{type,count}] for the searches that are priced.
func (r *interaction) grounded(d *wire.Decoder) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return
	}
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		kind, n := "", upstream.Known(0)
		for key := range d.Object {
			switch string(key) {
			case "type":
				kind = optString(d)
			case "count":
				n.Read(d)
			}
		}
		if kind == "google_search" {
			r.searches += n.Get()
		}
	}
}
