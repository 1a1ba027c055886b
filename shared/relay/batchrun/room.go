package batchrun

import (
	"context"
	"sync"

	"gateway/shared/wire"
)

// Responses to the rows of a step are in memory at the same time. Those of chats are short;
// those of embeddings have a vector for every input.
const (
	roomUnits  = 64       // estimated limit for the responses of one step together
	roomUnit   = 1 << 20  // bytes
	vectorSize = 64 << 10 // bytes of an encoded vector of 3,072 numbers
)

// answerRoom starts rows as long as there is memory for their responses.
type answerRoom struct {
	free chan struct{} // one for each unit
	next sync.Mutex    // only one row at a time collects units, so that no two wait for each other
}

func newAnswerRoom() *answerRoom {
	r := &answerRoom{free: make(chan struct{}, roomUnits)}
	for range roomUnits {
		r.free <- struct{}{}
	}
	return r
}

// take waits for n units, at most the total number. It returns false if ctx ends first.
func (r *answerRoom) take(ctx context.Context, n int) bool {
	r.next.Lock()
	defer r.next.Unlock()
	if ctx.Err() != nil {
		return false
	}
	for got := range n {
		select {
		case <-r.free:
		case <-ctx.Done():
			r.give(got)
			return false
		}
	}
	return true
}

func (r *answerRoom) give(n int) {
	for range n {
		r.free <- struct{}{}
	}
}

var inputKey = wire.NewKeySet("input")

// unitsOf estimates the memory for the response to a row, from one unit to all.
func unitsOf(body []byte) int {
	var at wire.Walk
	if inputKey.Walk(body, &at) != nil || !at.Spans[0].Present(body) {
		return 1
	}
	input := at.Spans[0].Of(body)
	if wire.KindOf(input) != wire.KindArray {
		return 1
	}
	n := 0
	d := wire.NewDecoder(input)
	for range d.Array {
		if d.Kind() == wire.KindNumber { // the tokens of one text
			n = 1
			break
		}
		d.Skip()
		n++
	}
	return max(1, min(roomUnits, n*vectorSize/roomUnit))
}
