package claude

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Thinking is the thinking setting of a request.
type Thinking struct {
	Mode   chat.Thinking // ThinkingUnsaid: nothing is written
	Budget int64
	Effort string // empty: nothing is written
}

// On reports whether the model thinks.
func (t Thinking) On() bool { return t.Mode >= chat.ThinkingBudget }

// Turns are the turns of a conversation, with the signed reasoning in them.
type Turns struct {
	Request *chat.Request
	// Signed reports whether the model takes a part back.
	Signed func(*chat.Part) bool
	// Recalled is what Recall found, by the part of the call.
	Recalled map[*chat.Part][]chat.Part
}

// maxRecalls bounds the tool calls that are looked up for one request.
const maxRecalls = 64

// Recall looks up the stored reasoning of calls that the client sent without it, newest
// first.
func (t *Turns) Recall() {
	if t.Request.Recall == nil {
		return
	}
	left := maxRecalls
	ms := t.Request.Messages
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role != chat.Assistant || t.anySigned(&ms[i]) {
			continue
		}
		for j := range ms[i].Parts {
			p := &ms[i].Parts[j]
			if p.Call == nil {
				continue
			}
			if left--; left < 0 {
				return
			}
			t.recall(p)
		}
	}
}

func (t *Turns) recall(p *chat.Part) {
	for _, q := range t.Request.Recall(p.Call.ID) {
		if !t.Signed(&q) {
			continue
		}
		if t.Recalled == nil {
			t.Recalled = make(map[*chat.Part][]chat.Part)
		}
		t.Recalled[p] = append(t.Recalled[p], q)
	}
}

func (t *Turns) anySigned(m *chat.Message) bool {
	for i := range m.Parts {
		if t.Signed(&m.Parts[i]) {
			return true
		}
	}
	return false
}

// Begun reports whether the turn that the tool results answer begins with signed reasoning.
// The provider demands that when the model thinks.
func (t *Turns) Begun() bool {
	ms := t.Request.Messages
	last := LastSpoken(ms)
	for last > 0 && ms[last].Role == chat.User && LastSpoken(ms[:last]) >= 0 && ms[LastSpoken(ms[:last])].Role == chat.ToolRole {
		last = LastSpoken(ms[:last]) // results are no new turn, whatever is beside them
	}
	if last < 0 || ms[last].Role != chat.ToolRole {
		return true
	}
	for i := last; i >= 0; i-- {
		switch ms[i].Role {
		case chat.User:
			return true
		case chat.Assistant:
			return t.begins(&ms[i])
		}
	}
	return true
}

func (t *Turns) begins(m *chat.Message) bool {
	for i := range m.Parts {
		p := &m.Parts[i]
		if t.Signed(p) || len(t.Recalled[p]) > 0 {
			return true
		}
		if p.Call != nil {
			return false
		}
	}
	return true
}

// Check rejects or removes what is incompatible with thinking. field is the field by
// which the client requested thinking.
func (t *Turns) Check(think *Thinking, traits *chat.Traits, field string, loss *chat.Loss) error {
	if !think.On() {
		return nil
	}
	if t.Request.ToolChoice.Forced() {
		if !traits.DowngradeToolChoice {
			return fault.Invalid("tool_choice", "tool_choice cannot force a tool while %s is on: this provider accepts auto or none with it", field)
		}
		loss.Add("tool_choice", "auto: a tool cannot be forced with thinking")
	}
	t.Recall()
	if think.Mode == chat.ThinkingBudget && !t.Begun() {
		loss.Add(field, "the signed reasoning of the tool call that is answered is not known")
		*think = Thinking{}
	}
	return nil
}

// LastSpoken is the index of the last message that is not a system prompt, -1 for
// none.
func LastSpoken(ms []chat.Message) int {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role != chat.System && ms[i].Role != chat.Developer {
			return i
		}
	}
	return -1
}
