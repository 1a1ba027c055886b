package chosen

import "gateway/shared/chat"

// withinBounds refuses what passes a bound of the specification, unless the target
// is known to set it wider. Bounds that none widens were tested at admission.
func (ch *Chooser) withinBounds(excess []chat.Excess) error {
	if len(excess) == 0 {
		return nil
	}
	return ch.To.Traits.Room.Within(excess)
}
