package usage

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
)

// cutRing takes the end of a ring's file away under its mapping: what reads or
// writes there gets the signal that a failing disk sends.
func (s *shelf) cutRing(g *ring, size int64) {
	s.t.Helper()
	if err := os.Truncate(ringPath(s.journal(), g.seq), size); err != nil {
		s.t.Fatal(err)
	}
}

// ids reads the available records, a few at a time, and returns their ids.
func (s *shelf) ids(j *Journal, check func(r *Record)) (ids []string) {
	s.t.Helper()
	for {
		b := s.next(j, 7)
		if len(b.Records) == 0 {
			return ids
		}
		for i := range b.Records {
			check(&b.Records[i])
			ids = append(ids, b.Records[i].ID)
		}
		if err := b.Done(context.Background()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Pages that are lost while the process runs lose only the events in them: later events go to
// files, and the next start succeeds.
func TestLostPagesOfTheRing(t *testing.T) {
	const size = 1000
	for name, c := range map[string]struct {
		cut   int64
		whole bool // all events are there
		none  bool // none of those that were on the ring is
	}{
		"everything":          {cut: 0, none: true},
		"all slots":           {cut: ringPage, none: true},
		"slots but for some":  {cut: 3 * ringPage},
		"slots to be written": {cut: ringPage + 64<<10, whole: true},
		"bodies":              {cut: ringPage + ringEvents, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			j := s.open(0)
			before, after := names(60), names(400)[60:]
			for _, id := range before {
				s.emit(j, id, size)
			}
			s.cutRing(j.ring, c.cut)
			for _, id := range after {
				s.emit(j, id, size)
			}
			if j.size == 0 || !j.ring.failed.Load() {
				t.Fatalf("%d bytes in files, given up: %v", j.size, j.ring.failed.Load())
			}
			got := s.ids(j, func(r *Record) {
				if r.ID >= after[0] && c.cut != ringPage+ringEvents {
					s.check(r, size)
				} else if r.Pack.Length != size {
					t.Errorf("%s: %d bytes of bodies", r.ID, r.Pack.Length)
				}
			})
			first, _ := slices.BinarySearch(got, after[0])
			switch {
			case !slices.Equal(got[first:], after):
				t.Errorf("behind the loss %v came, want %v", got[first:], after)
			case c.whole && !slices.Equal(got[:first], before), c.none && first > 0:
				t.Errorf("before the loss %v came", got[:first])
			case !c.whole && !c.none && !(first > 5 && slices.Equal(got[:first], before[:first])):
				t.Errorf("of the pages that are left came %v", got[:first])
			}
			if s.damaged == 0 {
				t.Error("nobody heard of it")
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}

			again := s.open(0)
			s.emit(again, "again", size)
			if got := s.ids(again, func(r *Record) { s.check(r, size) }); !slices.Equal(got, []string{"again"}) {
				t.Errorf("after a restart %v came", got)
			}
		})
	}
}

// A lost page among intact ones loses only its events.
func TestLostPageAmongOthers(t *testing.T) {
	s := newShelf(t)
	j := s.open(0)
	ids := names(200)
	for _, id := range ids {
		s.emit(j, id, 10)
	}
	// A page of no access, mapped over one of the ring's, is as lost as one of the disk.
	from, to := 4*ringPage, 5*ringPage
	lose(t, j.ring.mem[from:to])
	got := s.ids(j, func(r *Record) { s.check(r, 10) })
	missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(got, id) })
	sizeOf := int(j.ring.offsets.events.Load()) / len(ids)
	if most := ringPage/sizeOf + 2; len(missing) == 0 || len(missing) > most || len(got)+len(missing) != len(ids) {
		t.Errorf("%v are missing, of slots of %d bytes", missing, sizeOf)
	}
	if s.damaged == 0 {
		t.Error("nobody heard of it")
	}
}

// Bodies of a lost page become zeros in their pack, and those around it stay.
func TestLostPageOfBodies(t *testing.T) {
	s := newShelf(t)
	j := s.open(0)
	ids := names(30)
	for _, id := range ids {
		s.emit(j, id, ringPage) // the first begins at a page
	}
	lose(t, j.ring.bodies()[10*ringPage:11*ringPage])
	n := 0
	s.ids(j, func(r *Record) {
		if n++; r.ID != ids[10] {
			s.check(r, ringPage)
		} else if r.Pack.Length != ringPage {
			t.Errorf("the lost bodies have %d bytes", r.Pack.Length)
		}
	})
	if n != len(ids) || s.damaged != 1 {
		t.Errorf("%d records, heard of %d losses", n, s.damaged)
	}
}

// A dead process's ring that loses pages while it is read returns the remaining events.
func TestLostPagesOfAnOldRing(t *testing.T) {
	s := newShelf(t)
	first := s.open(0)
	for _, id := range names(60) {
		s.emit(first, id, 0)
	}
	second := s.open(0)
	s.cutRing(first.ring, 2*ringPage)
	s.emit(second, "new", 0)
	got := s.ids(second, func(r *Record) { s.check(r, 0) })
	if n := len(got) - 1; n < 5 || n > 59 || !slices.Equal(got, append(names(n), "new")) {
		t.Errorf("read %v", got)
	}
}

// A panic that has nothing to do with the ring is not taken for a loss.
func TestOtherPanicsGoOn(t *testing.T) {
	s := newShelf(t)
	j := s.open(0)
	for _, cause := range []any{errors.New("another"), "text"} {
		func() {
			defer func() {
				if p := recover(); p != cause || j.ring.failed.Load() {
					t.Errorf("%v came out, given up: %v", p, j.ring.failed.Load())
				}
			}()
			defer j.ring.recoverLostPage(nil, false)
			panic(cause)
		}()
	}
}
