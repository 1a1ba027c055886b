package batchrun

import (
	"context"
	"sync"

	"gateway/shared/wire"
)

// Answers of the rows of a step are in memory at the same time. Those of chats are
// short; those of embeddings have a vector for every input.
const (
	roomUnits  = 64       // that the answers of one step may take together, as far as that can be told
	roomUnit   = 1 << 20  // bytes
	vectorSize = 64 << 10 // bytes of a vector of 3,072 numbers, written out
)

// answerRoom lets rows begin as long as there is room for their answers.
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

// take waits for n units, which are at most all there are. It is false when ctx
// ends before.
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

// unitsOf is how much room the answer of a row may take, from one unit to all.
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
