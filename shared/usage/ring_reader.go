package usage

import "errors"

// currentRing returns the ring being read; nil if there is none.
func (rd *reader) currentRing() *ring {
	if rd.ring >= len(rd.rings) {
		return nil
	}
	return rd.rings[rd.ring]
}

// unreadOfRings estimates how many bytes of events wait on rings.
func (rd *reader) unreadOfRings() int64 {
	g := rd.currentRing()
	if g == nil {
		return 0
	}
	if rd.ring < len(rd.rings)-1 {
		return ringEvents // and the content of the next one
	}
	return int64(g.offsets.events.Load() - rd.ringAt)
}

// ringsFull reports whether the events on rings fill a batch.
func (rd *reader) ringsFull(max int) bool {
	g := rd.currentRing()
	if g == nil {
		return false
	}
	return rd.unreadOfRings() >= ringEvents/2 || g.count.Load()-rd.taken >= int64(max)
}

// takeFromRings collects records from the rings. Their bodies are in their packs when it
// returns.
func takeFromRings(j *Journal, max int) error {
	rd := &j.reader
	ring, at, taken := rd.ring, rd.ringAt, rd.taken
	bodies := false
	for g := rd.currentRing(); g != nil && !rd.full(max); g = rd.currentRing() {
		if rd.ringAt < g.offsets.events.Load() {
			bodies = takeSlot(j, g) || bodies
			continue
		}
		if rd.ring == len(rd.rings)-1 {
			break
		}
		rd.ring++
		rd.ringAt, rd.taken = rd.currentRing().offsets.acked.Load(), 0
	}
	if !bodies {
		return nil
	}
	if err := rd.currentRing().flush(true); err != nil {
		rd.ring, rd.ringAt, rd.taken = ring, at, taken // take them again next time
		return err
	}
	return nil
}

// takeSlot takes the slot at the reader's offset and reports whether its record has
// bodies.
func takeSlot(j *Journal, g *ring) (bodies bool) {
	rd := &j.reader
	at, r := rd.ringAt, rd.record()
	s, next, err := g.read(at, r, &rd.key)
	if err != nil {
		j.o.OnDamage(ringPath(j.dir, g.seq), int64(at%ringEvents)+ringPage, err)
		if next == 0 {
			next = g.skipDamage(at)
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

// acknowledgeRings frees the slots before an offset. It deletes a ring of an earlier
// process that was read completely.
func (rd *reader) acknowledgeRings(ring *ring, at uint64) error {
	for i, g := range rd.rings {
		if g != ring {
			continue
		}
		g.acknowledge(at)
		var errs []error
		for _, before := range rd.rings[:i] {
			before.acknowledge(before.offsets.events.Load())
			errs = append(errs, before.close())
		}
		rd.rings, rd.ring = rd.rings[i:], rd.ring-i
		return errors.Join(errs...)
	}
	return nil // acknowledged before, or the journal is closed
}
