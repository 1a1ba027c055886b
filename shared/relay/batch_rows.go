package relay

import (
	"encoding/json"

	"gateway/shared/dialect/job"
	"gateway/shared/provider"
)

// rowsUsage books what the rows of an ended batch used, where a host that speaks
// OpenAI's shape does not tell it with the batch: the output is read once. It is
// read before it is claimed, so that a reading that fails is done again by the next
// request.
func (s *sender) rowsUsage(id string, batch []byte) {
	var b batchState
	if json.Unmarshal(batch, &b) != nil || b.Output == "" {
		return
	}
	if claimed, err := s.batchClaimed(id); claimed || err != nil {
		s.fail("look for a batch's claim", err)
		return
	}
	op, asked := s.to.op, s.id
	resp, err := s.again(provider.FilesContent, b.Output)
	s.to.op, s.id = op, asked
	if err != nil {
		s.fail("usage of a batch", err)
		return
	}
	used, err := job.RowsUsage(resp.Body)
	if err != nil {
		s.fail("usage of a batch", err)
		return
	}
	if s.claimBooking(id) {
		s.bookRows(used)
	}
}
