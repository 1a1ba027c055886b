package gemini

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// MeterInteraction reads the usage of an interaction, from the object itself or from the
// event of a stream that contains it. ended reports that the provider has finished it.
func MeterInteraction(answer []byte) (m chat.Meter, ended bool) {
	r := interaction{status: "in_progress"}
	d := wire.NewDecoder(answer)
	r.readFrom(d)
	if d.End() != nil {
		return m, false
	}
	m = chat.Meter{Model: r.model, ID: r.id, Finish: r.status, Started: true}
	m.Mode = r.counts.mode
	m.ReportedTotal = r.counts.classes(&m.Usage, r.counts.searches)
	m.Usage = m.Usage.Bounded()
	ended = r.status != "in_progress" && r.status != "queued"
	m.Complete = ended
	return m, ended
}

type interaction struct {
	id, model, status string
	counts            counts
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
			r.counts.readMode(d)
		case "usage":
			r.counts.readFrom(d)
		}
	}
}

// searchesOf reads [{type,count}] for the searches that are priced.
func searchesOf(d *wire.Decoder) (searches int64) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return 0
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
			searches += n.Get()
		}
	}
	return searches
}
