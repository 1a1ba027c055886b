// Package sessions reads the Live sessions of OpenAI: their time, which is reported as a
// sum so far, and the responses and decisions that are made within them, each by its own
// id.
package sessions

import (
	"encoding/json"
	"math"
	"slices"
	"sync"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/live"
	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Ahead is how much time of a session, in seconds, is reserved before it is used. The
// provider reports the time about every fifteen seconds.
const Ahead = 60

// Time is the id of the session's own time.
const Time = "time"

// Meter reads a response's usage and model, as of POST /responses.
type Meter func(response []byte) chat.Meter

// Session is one session. It is made by New.
type Session struct {
	meter Meter
	first []byte
	model wire.Span

	client, provider wire.Walk
	mu               sync.Mutex
	began            time.Time
	seconds          int64 // the provider's last report; below 0 if there is none
	timed            bool  // the session's time is running
	open             map[string]*delegated
	history          int64 // tokens that responses of known usage have read and made
	all              int64 // bytes that responses read, since the session began
	upTo             int64 // those of them that are part of history: before such a response
}

// delegated is a response that is made within a session.
type delegated struct {
	model string
	at    int64 // bytes before it
	reads int64 // tokens, by an estimate
	made  int64 // bytes of its pieces
}

// maxOpen bounds the responses that are open at once, and maxName the names that are read,
// in bytes.
const (
	maxOpen = 256
	maxName = 512
)

// New reads a session that is opened by a model's name.
func New(m Meter) live.Wire { return &Session{meter: m, seconds: -1, open: map[string]*delegated{}} }

var (
	eventKeys   = wire.NewKeySet("type", "event_id", "session", "event", "usage", "delta", "audio", "reason")
	startKeys   = wire.NewKeySet("model", "delegation", "triggers")
	ownerKeys   = wire.NewKeySet("type", "responses", "decisions")
	backendKeys = wire.NewKeySet("model")
)

const (
	keyType = iota
	keyEventID
	keySession
	keyEvent
	keyUsage
	keyDelta
	keyAudio
	keyReason
)

// member is the value of a field; nil when it is absent or null.
func member(body []byte, w *wire.Walk, key int) []byte {
	if s := w.Spans[key]; s.Present(body) && !wire.IsNull(s.Of(body)) {
		return s.Of(body)
	}
	return nil
}

// text is a field that is a string; "" when it is absent.
func text(body []byte, w *wire.Walk, key int, name string) (string, error) {
	raw := member(body, w, key)
	switch {
	case raw == nil:
		return "", nil
	case len(raw) > 6*maxName:
		return "", fault.Invalid(name, "must have at most %d bytes", maxName)
	}
	return wire.ScanString(raw, name)
}

// readString returns a string value; "" for others.
func readString(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	s, _ := wire.ScanString(raw, "") // anything but a string counts as absent
	return s
}

// Opens implements live.Wire.
func (s *Session) Opens(first []byte) (o live.FirstMessage, err error) {
	w := &s.client
	if err := eventKeys.Walk(first, w); err != nil {
		return o, err
	}
	kind, err := text(first, w, keyType, "type")
	if err != nil {
		return o, err
	}
	if kind != "session.start" {
		return o, fault.Invalid("type", "must be session.start: the first message configures the session")
	}
	session := member(first, w, keySession)
	if session == nil {
		return o, fault.Invalid("session", "is required: an object with the model")
	}
	var in wire.Walk
	if err := startKeys.Walk(session, &in); err != nil {
		return o, within("session", err)
	}
	o.Steps = []live.Step{{Do: live.Begins, ID: Time, Seconds: Ahead}}
	at := w.Spans[keySession].Start
	s.first = slices.Clone(first)
	s.model = wire.Span{Start: at + in.Spans[0].Start, End: at + in.Spans[0].End}
	if o.Model, err = text(session, &in, 0, "session.model"); err != nil {
		return o, err
	}
	if o.Model == "" {
		return o, fault.Invalid("session.model", "is required: the model of the session")
	}
	o.Demands, s.all, err = readDemands(session, &in)
	o.Demands.Unheld = true // the session continues without pauses
	return o, err
}

// within puts the field field in front of a fault's own field.
func within(field string, err error) error {
	f := fault.From(err)
	if f.Field == "" || f.Field == "body" {
		f.Field = field
	} else {
		f.Field = field + "." + f.Field
	}
	return f
}

// readDemands reads which models will work for a session: the models of its delegation, and
// those triggered by its transcripts. told is the number of bytes of instructions for
// those that generate responses: prompts and tools.
func readDemands(session []byte, in *wire.Walk) (a live.Demands, bytes int64, err error) {
	add := func(owner []byte, field string) error {
		var w wire.Walk
		if err := ownerKeys.Walk(owner, &w); err != nil {
			return within(field, err)
		}
		for key, name := range [...]string{1: "responses", 2: "decisions"} {
			backend := []byte(nil)
			if name != "" {
				backend = member(owner, &w, key)
			}
			if backend == nil {
				continue
			}
			var b wire.Walk
			if name == "responses" {
				bytes += int64(len(backend))
			}
			if err := backendKeys.Walk(backend, &b); err != nil {
				return within(field+"."+name, err)
			}
			model, err := text(backend, &b, 0, field+"."+name+".model")
			if err != nil {
				return err
			}
			if model != "" {
				a.Models = append(a.Models, model)
			}
		}
		return nil
	}
	if owner := member(session, in, 1); owner != nil {
		if err := add(owner, "session.delegation"); err != nil {
			return a, bytes, err
		}
	}
	if list := member(session, in, 2); list != nil {
		var triggers []json.RawMessage
		if json.Unmarshal(list, &triggers) != nil {
			return a, bytes, fault.Invalid("session.triggers", "must be a list of objects")
		}
		for _, t := range triggers {
			if err := add(t, "session.triggers"); err != nil {
				return a, bytes, err
			}
		}
	}
	return a, bytes, nil
}

// FirstMessage implements live.Wire. The time of the session begins.
func (s *Session) FirstMessage(model string) []byte {
	out := slices.Concat(s.first[:s.model.Start], wire.AppendJSONString(nil, model), s.first[s.model.End:])
	s.mu.Lock()
	s.began, s.timed = time.Now(), true
	s.mu.Unlock()
	return out
}

// Client implements live.Wire.
func (s *Session) Client(message []byte) (h live.Content, err error) {
	w := &s.client
	if err := eventKeys.Walk(message, w); err != nil {
		return h, err
	}
	if h.ID, err = text(message, w, keyEventID, "event_id"); err != nil {
		return h, err
	}
	kind, err := text(message, w, keyType, "type")
	if err != nil {
		return h, err
	}
	switch kind {
	case "":
		return h, fault.Invalid("type", "is required: the type of the event")
	case "session.start":
		return h, fault.Invalid("type", "session.start opens a session, and this session is already open")
	case "session.input_audio.append":
		h.Audio = true
	case "session.update":
		session := member(message, w, keySession)
		if session == nil {
			break
		}
		var in wire.Walk
		if err := startKeys.Walk(session, &in); err != nil {
			return h, within("session", err)
		}
		if member(session, &in, 0) != nil {
			return h, fault.Invalid("session.model", "cannot be changed")
		}
		var bytes int64
		h.Demands, bytes, err = readDemands(session, &in)
		s.reads(bytes)
	default:
		s.reads(int64(len(message)))
	}
	return h, err
}

// Provider implements live.Wire. A message that cannot be read is forwarded and ignored.
func (s *Session) Provider(message []byte) (h live.Content) {
	w := &s.provider
	if eventKeys.Walk(message, w) != nil {
		return h
	}
	kind, _ := text(message, w, keyType, "type") // "" is no known type
	switch kind {
	case "session.input_transcript.delta":
		h.Voice = readString(member(message, w, keyDelta))
		s.reads(int64(len(h.Voice)))
	case "session.output_transcript.delta":
		h.Text = readString(member(message, w, keyDelta))
		s.reads(int64(len(h.Text)))
	case "session.usage.updated":
		h.Complete = true
		if n, ok := secondsOf(member(message, w, keyUsage)); ok {
			h.Steps = s.lasted(n)
		}
	case "session.closed":
		h.Complete, h.Last = true, true
		h.Steps = s.closed(member(message, w, keyUsage), member(message, w, keyReason))
	case "response.event":
		event := member(message, w, keyEvent)
		h.Steps = s.nested(event)
		h.Text = made(event)
		h.Complete = h.Text != ""
	case "decision.event":
		id, _ := text(message, w, keyEventID, "event_id") // a decision has no separate id
		h.Steps = s.decided(id, member(message, w, keyEvent))
	}
	return h
}

// secondsOf reads how long a session has lasted so far, in started seconds.
func secondsOf(usage []byte) (n int64, ok bool) {
	var decoded struct {
		Seconds *float64 `json:"seconds"`
	}
	if usage == nil || json.Unmarshal(usage, &decoded) != nil || decoded.Seconds == nil {
		return 0, false
	}
	if up := math.Ceil(*decoded.Seconds); up >= 0 && up <= pricing.MaxUnits {
		return int64(up), true
	}
	return 0, false
}

// lasted stores the time so far.
func (s *Session) lasted(n int64) []live.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.timed {
		return nil
	}
	s.seconds = n
	return []live.Step{{Do: live.Grows, ID: Time, Seconds: n + Ahead}}
}

// closed ends the time.
func (s *Session) closed(usage, reason []byte) []live.Step {
	n, known := secondsOf(usage)
	why := readString(reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.timed {
		return nil
	}
	if known {
		s.seconds = n
	}
	return []live.Step{s.ends(why, !known)}
}

// ends is the step by which the time ends. The lock is held.
func (s *Session) ends(why string, estimated bool) live.Step {
	s.timed = false
	step := live.Step{Do: live.Ends, ID: Time, Finish: why}
	if s.seconds < 0 { // the provider never reported the time
		s.seconds, estimated = int64(math.Ceil(time.Since(s.began).Seconds())), true
	}
	step.Usage.Set(pricing.Seconds, s.seconds)
	step.Usage.Estimated = estimated
	return step
}

// Busy implements live.Wire. When a close is requested, the provider closes and reports
// the session's length.
func (s *Session) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timed
}

// EndMessage implements live.Wire.
func (s *Session) EndMessage() []byte { return []byte(`{"type":"session.close"}`) }

// Error implements live.Wire.
func (s *Session) Error(f *fault.Fault, id, about string) []byte {
	out := append([]byte(nil), `{"type":"error","event_id":`...)
	out = wire.AppendJSONString(out, id)
	if about != "" {
		out = wire.AppendJSONString(append(out, `,"client_event_id":`...), about)
	}
	one := realtime.AppendError(nil, f, id, about)
	var in struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(one, &in) != nil {
		return nil // it is made here, so it can always be read
	}
	return append(append(append(out, `,"error":`...), in.Error...), '}')
}

// EndOpen implements live.Wire.
func (s *Session) EndOpen() (steps []live.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range s.open {
		steps = append(steps, d.lost(id))
	}
	clear(s.open)
	if s.timed {
		steps = append(steps, s.ends(realtime.ConnectionLost, true))
	}
	return steps
}
