package ledger

import (
	"context"
	"errors"

	"gateway/shared/store"
)

// doubtful is an entry that may have been written although the store reported an error,
// and that could not be given back immediately.
type doubtful struct {
	key   store.Key
	id    string
	value []byte
	entry entry
	// forced marks an entry that was written for a charge; see open.
	forced bool
}

// undo gives back an entry that may have been written although the store reported an
// error. If that is unknown, the part retains the entry: the request must not hold, or be
// charged for, the same amount twice.
func undo(l *Ledger, ctx context.Context, p *part, d doubtful, cause error) {
	if errors.Is(cause, store.ErrThrottled) || errors.Is(cause, store.ErrContended) {
		return
	}
	p.lost = append(p.lost, d)
	late := detach(ctx)
	defer late.end()
	l.base.failed(late, "give back a reservation", giveBack(l, late, p))
}

// giveBack settles the part's doubtful entries to zero. One that repair has settled, or
// may have, counts as charged.
func giveBack(l *Ledger, ctx context.Context, p *part) error {
	for len(p.lost) > 0 {
		d := &p.lost[0]
		met, err := l.close(ctx, nil, d.key, d.id, d.value, amounts{})
		if err != nil {
			return err
		}
		if met == entryRepairs || met == entryRepaired || met == entryUnknown && entryPast(d.value, l.base.clock().Unix()) {
			p.settledByRepair(&d.entry)
		}
		p.lost = p.lost[1:]
	}
	return nil
}
