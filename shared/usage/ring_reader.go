package usage

import "errors"

// reading is the ring being read; nil: there is none.
func (rd *reader) reading() *ring {
	if rd.ring >= len(rd.rings) {
		return nil
	}
	return rd.rings[rd.ring]
}

// unreadOfRings tells roughly how many bytes of events wait on rings.
func (rd *reader) unreadOfRings() int64 {
	g := rd.reading()
	if g == nil {
		return 0
	}
	if rd.ring < len(rd.rings)-1 {
		return ringEvents // and what the next one holds
	}
	return int64(g.at.events.Load() - rd.ringAt)
}

// ringsFull tells whether what waits on rings is a batch.
func (rd *reader) ringsFull(max int) bool {
	g := rd.reading()
	if g == nil {
		return false
	}
	return rd.unreadOfRings() >= ringEvents/2 || g.count.Load()-rd.taken >= int64(max)
}

// takeFromRings gathers records that are on the rings. Their bodies are in their
// packs when it returns.
func takeFromRings(j *Journal, max int) error {
	rd := &j.reader
	ring, at, taken := rd.ring, rd.ringAt, rd.taken
	bodies := false
	for g := rd.reading(); g != nil && !rd.full(max); g = rd.reading() {
		if rd.ringAt < g.at.events.Load() {
			bodies = takeSlot(j, g) || bodies
			continue
		}
		if rd.ring == len(rd.rings)-1 {
			break
		}
		rd.ring++
		rd.ringAt, rd.taken = rd.reading().at.acked.Load(), 0
	}
	if !bodies {
		return nil
	}
	if err := rd.reading().flush(true); err != nil {
		rd.ring, rd.ringAt, rd.taken = ring, at, taken // they are taken again
		return err
	}
	return nil
}

// takeSlot takes the slot at the reader's place; with bodies when its record has
// some.
func takeSlot(j *Journal, g *ring) (bodies bool) {
	rd := &j.reader
	at, r := rd.ringAt, rd.record()
	s, next, err := g.read(at, r, &rd.key)
	if err != nil {
		j.o.OnDamage(ringPath(j.dir, g.seq), int64(at%ringEvents)+ringPage, err)
		if next == 0 {
			next = g.behindDamage(at)
		}
	}
	rd.ringAt = next
	if err != nil || len(s.event) > 0 {
		rd.taken++
	}
	if err != nil || len(s.event) == 0 {
		*r = Record{}
		rd.records = rd.records[:len(rd.records)-1]
		return false
	}
	if s.length > 0 {
		r.Pack = Pack{Key: rd.key, Offset: s.offset, Length: s.length}
	}
	return s.length > 0
}

// acknowledgeRings frees what was read before a place. A ring of an earlier
// process that was read to its end is deleted.
func (rd *reader) acknowledgeRings(ring *ring, at uint64) error {
	for i, g := range rd.rings {
		if g != ring {
			continue
		}
		g.acknowledge(at)
		var errs []error
		for _, before := range rd.rings[:i] {
			before.acknowledge(before.at.events.Load())
			errs = append(errs, before.close())
		}
		rd.rings, rd.ring = rd.rings[i:], rd.ring-i
		return errors.Join(errs...)
	}
	return nil // acknowledged before, or the journal is closed
}
