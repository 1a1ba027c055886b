package bidi

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/live"
	"gateway/shared/dialect/realtime"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Places of serverKeys and turnKeys.
const (
	keyContent = iota
	keyToolCall
	keyUsage
	keyResume
)

const (
	keyTurn = iota
	keyComplete
	keyInterrupted
	keyInputTranscription
	keyOutputTranscription
)

// Provider implements live.Wire. A message that cannot be read is forwarded and ignored.
func (s *Session) Provider(message []byte) (h live.Content) {
	w := &s.provider
	if serverKeys.Walk(message, w) != nil {
		return h
	}
	var m part
	if at := w.Spans[keyContent]; at.Present(message) {
		m.read(s, at.Of(message), &h)
	}
	if at := w.Spans[keyToolCall]; at.Present(message) {
		m.calls = true
		h.Called += strings.Join(live.Texts(at.Of(message), callArguments), "\n")
	}
	if at := w.Spans[keyUsage]; at.Present(message) {
		m.usage, m.prompt = gemini.ReadUsage(at.Of(message))
	}
	if at := w.Spans[keyResume]; at.Present(message) {
		h.ResumeHandle = handleIn(at.Of(message))
	}
	h.Steps = s.take(&m)
	h.Complete = m.complete || m.calls
	return h
}

// handleIn reads the handle that resumes the session; "" where it cannot be resumed now.
func handleIn(update []byte) string {
	var w wire.Walk
	if resumeKeys.Walk(update, &w) != nil || !w.Spans[0].Present(update) || wire.KindOf(w.Spans[0].Of(update)) != wire.KindString {
		return ""
	}
	s, _ := wire.ScanString(w.Spans[0].Of(update), "") // what cannot be read resumes nothing
	return s
}

// part is the content of a message about a turn.
type part struct {
	turn     []byte // what the model says
	speaks   bool   // a transcript of it arrived
	complete bool   // the turn is over
	calls    bool   // it calls tools
	usage    pricing.Usage
	prompt   int64
}

func (m *part) read(s *Session, content []byte, h *live.Content) {
	w := &s.within
	if turnKeys.Walk(content, w) != nil {
		return
	}
	if at := w.Spans[keyTurn]; at.Present(content) {
		m.turn = at.Of(content)
		h.Text = strings.Join(live.Texts(m.turn, words), "")
		h.Called = strings.Join(live.Texts(m.turn, callArguments), "\n")
	}
	is := func(key int) bool { return string(w.Spans[key].Of(content)) == "true" }
	m.complete = is(keyComplete) || is(keyInterrupted)
	transcript := func(key int) string {
		var t struct {
			Text string `json:"text"`
		}
		if at := w.Spans[key]; at.Present(content) {
			_ = json.Unmarshal(at.Of(content), &t) // anything but a transcript has no text
		}
		return t.Text
	}
	output := transcript(keyOutputTranscription)
	m.speaks = output != ""
	h.Text += output
	h.Voice = transcript(keyInputTranscription)
}

// words are the fields of a turn with what the model says, writes as code and has computed, and
// callArguments those with the arguments of its calls.
var (
	words         = map[string]bool{"text": true, "code": true, "output": true}
	callArguments = map[string]bool{"args": true}
)

// take applies a message about turns.
func (s *Session) take(m *part) (steps []live.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	makes := m.turn != nil || m.speaks || m.calls
	if makes && s.open && s.over { // the turn before never reported its usage
		steps = append(steps, s.end(s.estimate(), "unknown"))
	}
	if makes && !s.open {
		steps = append(steps, s.begin())
	}
	if makes {
		s.requested = false
	}
	if m.turn != nil {
		s.made += int64(len(m.turn))
		s.sound = s.sound || bytes.Contains(m.turn, []byte(`"inlineData"`))
	}
	if m.usage.IsReported() {
		// The client may ask again before the provider has repeated the usage of the turn
		// before.
		if !s.open || s.requested && !m.complete && s.repeatsUsage(m) {
			return append(steps, s.late(m)...)
		}
		s.used, s.prompt = m.usage, m.prompt
	}
	switch {
	case !s.open:
	case s.used.IsReported() && (m.complete || m.calls || s.over):
		steps = append(steps, s.end(s.used, finish(m)))
	case m.complete:
		s.over = true
	}
	return steps
}

func finish(m *part) string {
	if m.calls {
		return "tool_calls"
	}
	return "completed"
}

// late handles usage that does not belong to the open turn, if there is one. It restates the usage of the turn
// before, if it has the same prompt, or belongs to a turn without content.
func (s *Session) late(m *part) []live.Step {
	if s.repeatsUsage(m) {
		more := grown(s.booked, m.usage)
		if !more.IsReported() {
			return nil
		}
		s.booked = m.usage
		s.growths++
		return []live.Step{{Do: live.Ends, ID: s.last + " grown " + strconv.Itoa(s.growths), Usage: more, Finish: "completed"}}
	}
	begins := s.begin()
	s.used, s.prompt = m.usage, m.prompt
	return []live.Step{begins, s.end(s.used, "completed")}
}

// repeatsUsage reports whether usage restates that of the turn that was booked last. The
// lock is held.
func (s *Session) repeatsUsage(m *part) bool { return m.prompt == s.read && s.booked.IsReported() }

// grown is how much more b has than a; classes that have not grown are unknown.
func grown(a, b pricing.Usage) (more pricing.Usage) {
	for c := range pricing.NumClasses {
		if n := b.N(c) - a.N(c); n > 0 {
			more.Set(c, n)
		}
	}
	return more
}

// end ends the turn. The lock is held.
func (s *Session) end(u pricing.Usage, finish string) live.Step {
	s.open, s.over = false, false
	s.booked, s.read, s.last, s.growths = u, s.prompt, s.id(), 0
	s.history, s.since = max(u.TotalTokens(), s.history), 0
	return live.Step{Do: live.Ends, ID: s.id(), Usage: u, Finish: finish}
}

// How many bytes of output make a token.
const (
	madeText  = 4
	madeSound = 2560 // of Base64 of 24,000 samples a second, at 25 tokens a second
)

// estimate is what the turn is taken to have used. The lock is held.
func (s *Session) estimate() (u pricing.Usage) {
	if s.used.IsReported() {
		u = s.used
		u.Estimated = true
		return u
	}
	u.Set(pricing.Input, s.history+(s.since+madeText-1)/madeText)
	if s.sound {
		u.Set(pricing.AudioOut, (s.made+madeSound-1)/madeSound)
	} else {
		u.Set(pricing.Output, (s.made+madeText-1)/madeText)
	}
	u.Estimated = true
	return u
}

// EndOpen implements live.Wire.
func (s *Session) EndOpen() []live.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return nil
	}
	u := s.estimate()
	if s.made == 0 && !s.used.IsReported() && !s.over {
		u = pricing.Usage{} // it had no result
	}
	return []live.Step{s.end(u, realtime.ConnectionLost)}
}
