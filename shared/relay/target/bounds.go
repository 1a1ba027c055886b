package target

import "gateway/shared/chat"

// withinBounds refuses a body that exceeds a bound of the specification, unless the target
// is known to allow more. Bounds that no target widens were checked at admission.
func withinBounds(tg *Target, excess []chat.Excess) error {
	if len(excess) == 0 {
		return nil
	}
	return tg.To.Traits.Room.Within(excess)
}
