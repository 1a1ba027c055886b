package local

// turns orders the messages of a queue so that groups take turns: the next
// message of a group stands one behind its last one, but never behind where
// serving has come to. A group with 1,000 waiting messages holds the turns 1 to
// 1,000; the first message of another group gets turn 1 too. It belongs to the
// writer.
type turns struct {
	served int64            // turn of the latest message handed out
	last   map[string]int64 // latest turn given to each group
}

func (t *turns) next(group string) int64 {
	turn := max(t.served, t.last[group]) + 1
	if len(t.last) >= 4096 {
		for g, last := range t.last { // what is behind serving has no effect any more
			if last <= t.served {
				delete(t.last, g)
			}
		}
	}
	t.last[group] = turn
	return turn
}

func (t *turns) serve(turn int64) { t.served = max(t.served, turn) }
