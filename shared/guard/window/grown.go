package window

import (
	"strings"
)

// growthFraction is the fraction of a text's length that must arrive, beyond the window, before the text
// is judged again: each judgment costs more as the text grows.
const growthFraction = 16

// grow judges the entire text so far, and forwards the part that passed: as much as stays the
// same when it is judged separately. So everything that was sent is at any time a text that the
// judge has passed or changed, and contains nothing that the judge forbids, whatever its
// length.
func (g *texts) grow(l *line, come []byte) error {
	all := append(l.seen[:len(l.seen):len(l.seen)], come...)
	now, denied := g.judge(string(all))
	if g.denied = denied; denied != nil {
		return nil
	}
	passed := l.passed
	if l.passed = 0; now == string(all) {
		l.passed = len(all)
		// What passed separately the last time need not be judged again.
		if cut := passed - len(l.seen); cut > 0 && cut <= g.cut(come) && strings.HasPrefix(now, l.sent) {
			return g.releaseGrown(l, cut, now[:passed])
		}
	}
	for cut := g.cut(come); cut > 0; cut = g.end(come, cut/2) {
		head, denied := g.judge(string(all[:len(l.seen)+cut]))
		if denied == nil && strings.HasPrefix(now, head) && strings.HasPrefix(head, l.sent) {
			return g.releaseGrown(l, cut, head)
		}
	}
	l.next = l.count + g.step(l)
	return nil
}

// slack is how many characters beyond the window are awaited, so that the text that was judged
// last ends before the window although only complete words are judged.
const slack = 24

// step is how many characters must come before a text is judged again.
func (g *texts) step(l *line) int {
	return max(g.size+slack, (len(l.seen)+len(l.text))/growthFraction)
}

// releaseGrown passes a text on up to a place; head is all of it up to there, as it is to
// be sent.
func (g *texts) releaseGrown(l *line, cut int, head string) error {
	more, source := head[len(l.sent):], string(l.text[:cut])
	l.seen, l.sent = append(l.seen, source...), head
	var now *string
	if more != source {
		now = &more
	}
	err := g.release(l, cut, now)
	l.next = l.count + g.step(l)
	return err
}

// finishGrown judges a text that has ended, and forwards the rest of it. If the end changes how the
// beginning should have been sent, the rest is judged separately, and must be consistent with
// what was sent; otherwise it is not sent.
func (g *texts) finishGrown(l *line) error {
	now, denied := g.judge(string(l.seen) + string(l.text))
	if g.denied = denied; denied != nil {
		return nil
	}
	if strings.HasPrefix(now, l.sent) {
		return g.releaseGrown(l, len(l.text), now)
	}
	rest, denied := g.judge(string(l.text))
	if denied == nil {
		both := l.sent + rest
		if again, denied := g.judge(both); denied == nil && again == both {
			return g.releaseGrown(l, len(l.text), both)
		}
	}
	g.denied = g.deny()
	return nil
}
