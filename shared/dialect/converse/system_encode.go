package converse

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/dialect/upstream"
)

// Reasons why a system prompt was moved.
const (
	inFront     = "moved to the beginning of the conversation: this model accepts no system prompt within it"
	behindNone  = "moved to the beginning of the conversation: it follows no turn of the user"
	behindOther = "moved after the turn of the user"
)

// placedPrompt is a system prompt that is written after a turn of the user.
type placedPrompt struct{ at, end int } // its index, and the end of the run of that turn

// planSystem decides where system prompts go that come after the first turn. A model that
// takes such prompts takes them only after a turn of the user, each as one message. For
// other models all of them go in front. Moved prompts are reported.
func planSystem(e *requestEncoder) error {
	ms := e.r.Messages
	for i := 0; i < len(ms); {
		if sideOf(&ms[i]) == 0 { // before the first turn: it goes in front anyway
			i++
			continue
		}
		end := run(ms, i)
		planRun(e, i, end)
		i = end
	}
	return nil
}

// planRun decides the places of the system prompts within a run.
func planRun(e *requestEncoder, first, end int) {
	ms := e.r.Messages
	last, prompts := first, 0 // the last message of the run that is not a system prompt, and how many prompts there are
	for k := first; k < end; k++ {
		if sideOf(&ms[k]) != 0 {
			last = k
		} else {
			prompts++
		}
	}
	if prompts == 0 {
		return
	}
	from, to := first, end // the turn of the user that the prompts may follow
	users := sideOf(&ms[first]) == 'u'
	if !users { // it is the next turn, if there is one
		if from = end; end < len(ms) {
			to = run(ms, end)
		}
	}
	taken := e.t.SystemTurns && from < len(ms) && hasUserContent(ms[from:to])
	for k := first; k < end; k++ {
		if sideOf(&ms[k]) != 0 {
			continue
		}
		at := upstream.Path(&ms[k], nil)
		switch {
		case !e.t.SystemTurns:
			e.loss.Add(at, inFront)
			continue
		case !taken:
			e.loss.Add(at, behindNone)
			continue
		case !users || k < last:
			e.loss.Add(at, behindOther)
		}
		e.placed = append(e.placed, placedPrompt{k, to})
	}
}

// hasUserContent reports whether some of the user's messages among ms will certainly be written.
func hasUserContent(ms []chat.Message) bool {
	for i := range ms {
		if sideOf(&ms[i]) != 'u' {
			continue
		}
		for j := range ms[i].Parts {
			if p := &ms[i].Parts[j]; ms[i].Role == chat.ToolRole || p.Kind == chat.Text && !blank(p.Text) {
				return true
			}
		}
	}
	return false
}

// behind returns the system prompts among placed that follow the run ending at end. They
// are at its beginning, because both advance together.
func behind(placed []placedPrompt, end int) (those, rest []placedPrompt) {
	n := 0
	for n < len(placed) && placed[n].end == end {
		n++
	}
	return placed[:n], placed[n:]
}

// encodeSystem writes the system prompts that go in front, in their order.
func encodeSystem(e *requestEncoder) error {
	start := len(e.B)
	e.Key("system")
	e.Open('[')
	list := len(e.B)
	placed := e.placed
	for i := range e.r.Messages {
		switch {
		case len(placed) > 0 && placed[0].at == i:
			placed = placed[1:]
		case sideOf(&e.r.Messages[i]) == 0:
			systemTexts(e, &e.r.Messages[i])
		}
	}
	if e.format == claude.SchemaInPrompt {
		text(e, chat.JSONInstruction)
	}
	if len(e.B) == list {
		e.B = e.B[:start]
		return nil
	}
	e.Close(']')
	return nil
}

// systemTexts writes the texts of a system prompt.
func systemTexts(e *requestEncoder, m *chat.Message) {
	for j := range m.Parts {
		p := &m.Parts[j]
		switch {
		case p.Kind != chat.Text:
			e.loss.Add(upstream.Path(m, p), "a system prompt is text here")
		case blank(p.Text):
			lostMarker(e, p.Cache, path(m, p))
		default:
			text(e, p.Text)
			cachePoint(e, p.Cache, path(m, p))
		}
	}
	dropName(e, m)
}

// systemTurn writes system prompts as one message of the conversation.
func systemTurn(e *requestEncoder, prompts []placedPrompt) {
	if len(prompts) == 0 {
		return
	}
	start := len(e.B)
	e.Open('{')
	e.Str("role", "system")
	e.Key("content")
	e.Open('[')
	content := len(e.B)
	for _, p := range prompts {
		systemTexts(e, &e.r.Messages[p.at])
	}
	if len(e.B) == content {
		e.B = e.B[:start]
		return
	}
	e.B = append(e.B, "]}"...)
}
