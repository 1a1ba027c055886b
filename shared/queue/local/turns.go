package local

// turns orders the messages of a queue so that groups take turns. The next message of a
// group gets the turn after the group's last one, but at least the turn after the one that
// was served last. If a group with 1,000 waiting messages has the turns 1 to 1,000, the
// first message of another group gets turn 1 too. Only the writer uses it.
type turns struct {
	served int64            // turn of the latest message handed out
	last   map[string]int64 // latest turn given to each group
}

func (t *turns) next(group string) int64 {
	turn := max(t.served, t.last[group]) + 1
	if len(t.last) >= 4096 {
		for g, last := range t.last { // turns that were served have no effect any more
			if last <= t.served {
				delete(t.last, g)
			}
		}
	}
	t.last[group] = turn
	return turn
}

func (t *turns) serve(turn int64) { t.served = max(t.served, turn) }
