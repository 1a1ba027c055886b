package usage

import (
	"context"
	"slices"
	"testing"
)

// A journal configured without a ring maps none, and reads the ring of an earlier process
// before its own events.
func TestAJournalWithoutARing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const size = 1000
	first := s.open(1 << 20)
	for _, id := range names(20) {
		s.emit(first, id, size)
	}
	second := openJournal(t, s.journal(), JournalOptions{NoRing: true, Bucket: s.bucket})
	if second.ring != nil {
		t.Fatal("there is a ring")
	}
	for _, id := range names(50)[20:] {
		s.emit(second, id, size)
	}
	var got []string
	for {
		b := s.next(second, 7)
		if len(b.Records) == 0 {
			break
		}
		for i := range b.Records {
			s.check(&b.Records[i], size)
			got = append(got, b.Records[i].ID)
		}
		if err := b.Done(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if slices.Sort(got); !slices.Equal(got, names(50)) {
		t.Errorf("read %v", got)
	}
	// Its ring goes with the next start.
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	openJournal(t, s.journal(), JournalOptions{NoRing: true, Bucket: s.bucket})
	if rings := s.list(ringSuffix); len(rings) > 0 {
		t.Errorf("rings: %v", rings)
	}
}
