package target

import "gateway/shared/chat"

// withinBounds rejects a body that exceeds a limit of the specification, unless the target is
// known to allow more. Limits that no target extends were checked at admission.
func withinBounds(tg *Target, excess []chat.Excess) error {
	if len(excess) == 0 {
		return nil
	}
	return tg.To.Traits.Extended.Within(excess)
}
