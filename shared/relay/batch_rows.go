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
func (c *call) rowsUsage(id string, batch []byte) {
	var b batchState
	if json.Unmarshal(batch, &b) != nil || b.Output == "" {
		return
	}
	if claimed, err := c.batchClaimed(id); claimed || err != nil {
		c.fail("look for a batch's claim", err)
		return
	}
	op, asked := c.to.op, c.id
	resp, err := c.again(provider.FilesContent, b.Output)
	c.to.op, c.id = op, asked
	if err != nil {
		c.fail("usage of a batch", err)
		return
	}
	used, err := job.RowsUsage(resp.Body)
	if err != nil {
		c.fail("usage of a batch", err)
		return
	}
	if c.claimBooking(id) {
		c.bookRows(used)
	}
}
