package relay

import "gateway/shared/chat"

// withinBounds refuses what passes a bound of the specification, unless the target
// is known to set it wider. Bounds that none widens were tested at admission.
func (ch *chooser) withinBounds(excess []chat.Excess) error {
	if len(excess) == 0 {
		return nil
	}
	return ch.to.traits.Room.Within(excess)
}
