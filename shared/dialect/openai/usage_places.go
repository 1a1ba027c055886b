package openai

import (
	"gateway/shared/chat"
	"gateway/shared/wire"
)

// usageReport combines the usage objects of one response. Hosts write usage beside the
// choices, within a choice (Moonshot) or in x_groq (Groq), some in two places and some in
// several events. The counts are totals of the response, so they are never added: a later
// count replaces an earlier one, and one beside the choices those elsewhere.
type usageReport struct {
	top, side       reported // beside the choices; elsewhere
	hasTop, hasSide bool
}

// readTop reads a usage object beside the choices.
func (u *usageReport) readTop(d *wire.Decoder) { readInto(d, &u.top, &u.hasTop) }

// readSide reads a usage object elsewhere.
func (u *usageReport) readSide(d *wire.Decoder) { readInto(d, &u.side, &u.hasSide) }

func readInto(d *wire.Decoder, r *reported, has *bool) {
	read := unreported
	if read.readFrom(d); !read.known() {
		return
	}
	mergeInto(r, &read, has)
}

func mergeInto(r, later *reported, has *bool) {
	if !*has {
		*r, *has = *later, true
		return
	}
	r.merge(later)
}

// readGroq reads the usage in an x_groq object.
func (u *usageReport) readGroq(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		if string(key) == "usage" {
			u.readSide(d)
		}
	}
}

// readChoices reads the usage in the choices of a plain response.
func (u *usageReport) readChoices(choices []byte) {
	d := wire.NewDecoder(choices)
	if d.Kind() != wire.KindArray {
		return
	}
	for range d.Array {
		if d.Kind() != wire.KindObject {
			d.Skip()
			continue
		}
		for key := range d.Object {
			if string(key) == "usage" {
				u.readSide(d)
			}
		}
	}
}

// merge takes over what a later event of the same response reports.
func (u *usageReport) merge(later *usageReport) {
	if later.hasTop {
		mergeInto(&u.top, &later.top, &u.hasTop)
	}
	if later.hasSide {
		mergeInto(&u.side, &later.side, &u.hasSide)
	}
}

// known reports whether any usage was found.
func (u *usageReport) known() bool { return u.hasTop || u.hasSide }

// classes splits the result into the disjoint classes of m.
func (u *usageReport) classes(m *chat.Meter) {
	r := u.top
	switch {
	case !u.known():
		return
	case !u.hasTop:
		r = u.side
	case u.hasSide:
		r = u.side
		r.merge(&u.top)
	}
	m.ReportedTotal, m.SearchContext = r.classes(&m.Usage), r.context
}
