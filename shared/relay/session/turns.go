package session

import (
	"cmp"
	"strconv"
	"sync"

	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// Limits of concurrent work.
const (
	maxAwaited = 16
	maxSeen    = 4096 // ids of responses and of transcribed items
)

// turns are the responses of a session: requested, in progress, done.
type turns struct {
	mu             sync.Mutex
	awaited        []awaited
	running        map[string]running
	seen           map[string]struct{} // ids of finished responses, and of transcribed items
	is             realtime.Session
	history        tokens         // that the last response read and made
	since          realtime.Added // by the client, after it
	unboundedField string         // field by which the provider adds input of any length; "": none was named
}

// tokens are counted apart by medium, because their prices differ.
type tokens struct{ text, audio, image int64 }

func (n tokens) plus(m tokens) tokens {
	return tokens{n.text + m.text, n.audio + m.audio, n.image + m.image}
}

func (n tokens) total() int64 { return n.text + n.audio + n.image }

// tokensOf returns what a response has read and made, which the next one reads.
func tokensOf(u pricing.Usage) tokens {
	n := tokens{
		audio: u.N(pricing.AudioIn) + u.N(pricing.AudioCacheRead) + u.N(pricing.AudioOut),
		image: u.N(pricing.ImageIn) + u.N(pricing.ImageCacheRead),
	}
	n.text = max(u.TotalTokens()-n.audio-n.image, 0)
	return n
}

// awaited is a response that was requested and has not started.
type awaited struct {
	event string // id of the client's event; "" when it gave none
	turn  Reservation
}

// running is a response under way.
type running struct {
	turn      Reservation // nil: none was admitted
	made      tokens      // by the length of the output received
	cancelled bool
}

func (t *turns) begin(model string) { t.is = realtime.Session{Model: model} }

// How content is converted to tokens. Bounds use the most tokens that content can have,
// estimates the usual number.
const (
	bytesOfToken      = 4    // of text, as a rule; at least it is one
	bytesOfAudio      = 800  // Base64 of an audio token, at least: ten a second of the leanest format
	usualBytesOfAudio = 3200 // Base64 of an audio token that a model makes: twenty a second of PCM, 24 kHz
	tokensOfImage     = 4000 // at most
	usualImage        = 800
)

// countInput counts what the client added to the conversation.
func (t *turns) countInput(a realtime.Added) {
	t.mu.Lock()
	t.since = realtime.Added{Text: t.since.Text + a.Text, Audio: t.since.Audio + a.Audio, Images: t.since.Images + a.Images}
	t.mu.Unlock()
}

// input is the most that the next response may read.
func (t *turns) input() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := int64(t.since.Text) + per(t.since.Audio, bytesOfAudio) + int64(t.since.Images)*tokensOfImage
	return t.history.total() + since + int64(len(t.is.Instructions))
}

// per is how many tokens of a size bytes make, rounded up.
func per(bytes, size int) int64 { return int64((bytes + size - 1) / size) }

// bound is the most output of a response, as the session states; 0 if it states none.
func (t *turns) bound() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.is.MaxOutput
}

// checkOpen rejects a request for a response while too many are open.
func (t *turns) checkOpen() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.awaited)+len(t.running) < maxAwaited {
		return nil
	}
	return fault.Newf(fault.RateLimited, "", "%d responses of this session are requested or in progress; wait for one of them", maxAwaited)
}

func (t *turns) await(turn Reservation, event string) {
	t.mu.Lock()
	t.awaited = append(t.awaited, awaited{event, turn})
	t.mu.Unlock()
}

// open records a response that has started.
func (t *turns) open(id string, turn Reservation) {
	t.mu.Lock()
	if t.running == nil {
		t.running = make(map[string]running)
	}
	t.running[id] = running{turn: turn}
	t.mu.Unlock()
}

// created assigns the earliest requested turn to a response that has started; it returns false
// if none was requested.
func (t *turns) created(id string) bool {
	t.mu.Lock()
	if len(t.awaited) == 0 {
		t.mu.Unlock()
		return false
	}
	turn := t.awaited[0].turn
	t.awaited = append(t.awaited[:0], t.awaited[1:]...)
	t.mu.Unlock()
	t.open(id, turn)
	return true
}

// unseen reports whether a response is unknown.
func (t *turns) unseen(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, over := t.seen[id]
	_, runs := t.running[id]
	return !over && !runs
}

// first reports whether an id is seen for the first time, and remembers it.
func (t *turns) first(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.note("heard " + id)
}

func (t *turns) note(id string) bool {
	if _, known := t.seen[id]; known {
		return false
	}
	if t.seen == nil || len(t.seen) >= maxSeen {
		t.seen = make(map[string]struct{})
	}
	t.seen[id] = struct{}{}
	return true
}

// done removes the turn of a response that has ended; nil if it has none. known is false if it
// ended before. Its usage is in d, estimated if the provider does not report it.
func (t *turns) done(d *realtime.Done) (turn Reservation, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, runs := t.running[d.ID]
	if !runs {
		return nil, t.note(d.ID)
	}
	delete(t.running, d.ID)
	t.note(d.ID)
	if !d.Usage.IsReported() && (d.Status == "completed" || r.made.total() > 0) {
		estimate(&d.Usage, t.history, t.since, r.made)
	}
	t.history, t.since = tokensOf(d.Usage), realtime.Added{}
	return r.turn, true
}

// estimate sets the usage that is assumed for a response without reported usage: its text, audio
// and images each in their own class.
func estimate(u *pricing.Usage, history tokens, since realtime.Added, made tokens) {
	u.Set(pricing.Input, history.text+per(since.Text, bytesOfToken))
	u.Set(pricing.Output, made.text)
	for class, n := range map[pricing.Class]int64{
		pricing.AudioIn:  history.audio + per(since.Audio, usualBytesOfAudio),
		pricing.ImageIn:  history.image + int64(since.Images)*usualImage,
		pricing.AudioOut: made.audio,
	} {
		if n > 0 {
			u.Set(class, n)
		}
	}
	u.Estimated = true
}

// made counts the output of a response.
func (t *turns) made(id string, bytes int, audio bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := tokens{text: per(bytes, bytesOfToken)}
	if audio {
		n = tokens{audio: per(bytes, usualBytesOfAudio)}
	}
	if r, runs := t.running[id]; runs {
		t.running[id] = running{r.turn, r.made.plus(n), r.cancelled}
	}
}

// failed removes the turn that a provider's error is about; nil if none is waiting. An error
// without an event id is assumed to be about the first; if that response starts anyway, it is
// admitted again.
func (t *turns) failed(event string) Reservation {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, a := range t.awaited {
		if event == "" || a.event == event {
			t.awaited = append(t.awaited[:i], t.awaited[i+1:]...)
			return a.turn
		}
	}
	return nil
}

// isNow records the session state that the provider reports.
func (t *turns) isNow(s *realtime.Session) {
	t.mu.Lock()
	t.is = realtime.Session{Model: t.is.Model, Transcription: s.Transcription, MaxOutput: s.MaxOutput, Instructions: s.Instructions}
	t.mu.Unlock()
	t.names(s)
}

// names records that a session names input of any length. It holds to the end of the session,
// since an update may be in progress while a response starts.
func (t *turns) names(s *realtime.Session) {
	t.mu.Lock()
	t.unboundedField = cmp.Or(t.unboundedField, s.UnboundedField)
	t.mu.Unlock()
}

// unboundedInput is the field by which the provider adds input of any length; "" if there is none.
func (t *turns) unboundedInput() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unboundedField
}

// transcriber returns the model that transcribes the client's audio.
func (t *turns) transcriber() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.is.Transcription != "" {
		return t.is.Transcription
	}
	return t.is.Model
}

// transcribes reports whether the client's audio is transcribed.
func (t *turns) transcribes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.is.Transcription != ""
}

// toCancel returns the responses in progress that were not canceled yet.
func (t *turns) toCancel() (ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, r := range t.running {
		if !r.cancelled {
			t.running[id] = running{r.turn, r.made, true}
			ids = append(ids, id)
		}
	}
	return ids
}

// cancels records that a response was canceled.
func (t *turns) cancels(id string) {
	t.mu.Lock()
	if r, runs := t.running[id]; runs {
		t.running[id] = running{r.turn, r.made, true}
	}
	t.mu.Unlock()
}

// quiet reports whether no response is requested or in progress.
func (t *turns) quiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.awaited)+len(t.running) == 0
}

// leave charges all open responses: those in progress by their output so far.
func (t *turns) leave() {
	t.mu.Lock()
	waiting, open := t.awaited, t.running
	t.awaited, t.running = nil, nil
	dones := make(map[string]*realtime.Done, len(open))
	for id, r := range open {
		d := &realtime.Done{ID: id, Status: "incomplete", Reason: realtime.ConnectionLost}
		estimate(&d.Usage, t.history, t.since, r.made)
		dones[id] = d
	}
	t.mu.Unlock()
	for _, a := range waiting {
		a.turn.Drop(nil)
	}
	for id, r := range open {
		if r.turn != nil {
			r.turn.End(dones[id], nil)
		}
	}
}

// eventID names an event that the gateway itself created.
func eventID(session string, n int) string {
	return "event_" + session + "_" + strconv.Itoa(n)
}
