package session

import (
	"cmp"
	"strconv"
	"sync"

	"gateway/shared/dialect/realtime"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// Bounds of what is open at once.
const (
	maxAwaited = 16
	maxSeen    = 4096 // ids of responses and of what was heard
)

// turns are the responses of a session: asked for, under way, done.
type turns struct {
	mu      sync.Mutex
	awaited []awaited
	running map[string]*running
	seen    map[string]struct{} // ids of finished responses, and of what was heard
	is      realtime.Session
	history tokens         // that the last response read and made
	since   realtime.Added // by the client, after it
	held    string         // field by which the provider adds input of any length; "": none was named
}

// tokens are counted apart by medium, because their prices differ.
type tokens struct{ text, audio, image int64 }

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

// awaited is a response that was asked for and has not begun.
type awaited struct {
	event string // id of the client's event; "" when it gave none
	turn  Turn
}

// running is a response under way.
type running struct {
	turn      Turn   // nil: none was admitted
	made      tokens // by the length of what came
	cancelled bool
}

func (t *turns) begin(model string) { t.is.Model = model }

// How content is converted to tokens. Bounds use the most tokens that content can have,
// estimates the usual number.
const (
	bytesOfToken      = 4    // of text, as a rule; at least it is one
	bytesOfAudio      = 800  // Base64 of an audio token, at least: ten a second of the leanest format
	usualBytesOfAudio = 3200 // Base64 of an audio token that a model makes: twenty a second of PCM, 24 kHz
	tokensOfImage     = 4000 // at most
	usualImage        = 800
)

// said counts what the client added to the conversation.
func (t *turns) said(a realtime.Added) {
	t.mu.Lock()
	t.since.Text += a.Text
	t.since.Audio += a.Audio
	t.since.Images += a.Images
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

// bound is the most that a response may make, as the session says; 0: it does not.
func (t *turns) bound() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.is.MaxOutput
}

// room refuses a response that is asked for while too many are.
func (t *turns) room() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.awaited)+len(t.running) < maxAwaited {
		return nil
	}
	return fault.Newf(fault.RateLimited, "", "%d responses of this session are asked for or under way; wait for one of them", maxAwaited)
}

func (t *turns) await(turn Turn, event string) {
	t.mu.Lock()
	t.awaited = append(t.awaited, awaited{event, turn})
	t.mu.Unlock()
}

// open notes a response that has begun.
func (t *turns) open(id string, turn Turn) {
	t.mu.Lock()
	if t.running == nil {
		t.running = make(map[string]*running)
	}
	t.running[id] = &running{turn: turn}
	t.mu.Unlock()
}

// created gives a response that has begun the turn that was asked for first; false
// when none was.
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

// unseen tells whether nothing is known of a response.
func (t *turns) unseen(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, over := t.seen[id]
	return !over && t.running[id] == nil
}

// first tells whether an id comes for the first time, and remembers it.
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

// done takes the turn of a response that has ended; nil: it has none. known is false of
// one that has ended before. What it used stands in d, estimated where the provider does
// not tell.
func (t *turns) done(d *realtime.Done) (turn Turn, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.running[d.ID]
	if r == nil {
		return nil, t.note(d.ID)
	}
	delete(t.running, d.ID)
	t.note(d.ID)
	if !d.Usage.Known() && (d.Status == "completed" || r.made.total() > 0) {
		t.estimate(d, r)
	}
	t.history, t.since = tokensOf(d.Usage), realtime.Added{}
	return r.turn, true
}

// estimate is the usage that is assumed for a response whose usage is not reported: its text,
// audio and images each in their own class.
func (t *turns) estimate(d *realtime.Done, r *running) {
	u := &d.Usage
	u.Set(pricing.Input, t.history.text+per(t.since.Text, bytesOfToken))
	u.Set(pricing.Output, r.made.text)
	for class, n := range map[pricing.Class]int64{
		pricing.AudioIn:  t.history.audio + per(t.since.Audio, usualBytesOfAudio),
		pricing.ImageIn:  t.history.image + int64(t.since.Images)*usualImage,
		pricing.AudioOut: r.made.audio,
	} {
		if n > 0 {
			u.Set(class, n)
		}
	}
	u.Estimated = true
}

// made counts what has come of a response.
func (t *turns) made(id string, bytes int, audio bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.running[id]
	switch {
	case r == nil:
	case audio:
		r.made.audio += per(bytes, usualBytesOfAudio)
	default:
		r.made.text += per(bytes, bytesOfToken)
	}
}

// failed takes the turn that a provider's error is about; nil: none that waits. An error
// that does not say so is assumed to be about the first; if that response begins all the
// same, it is admitted again.
func (t *turns) failed(event string) Turn {
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

// isNow takes over what the provider says of the session.
func (t *turns) isNow(s *realtime.Session) {
	t.mu.Lock()
	t.is.Transcription, t.is.MaxOutput, t.is.Instructions = s.Transcription, s.MaxOutput, s.Instructions
	t.mu.Unlock()
	t.names(s)
}

// names notes that a session names input of any length. It holds to the end of the session, since an
// update may be under way while a response begins.
func (t *turns) names(s *realtime.Session) {
	t.mu.Lock()
	t.held = cmp.Or(t.held, s.Held)
	t.mu.Unlock()
}

// heldIn is the field by which the provider adds input of any length; "" if there is none.
func (t *turns) heldIn() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

// hears is the model that transcribes what is heard.
func (t *turns) hears() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.is.Transcription != "" {
		return t.is.Transcription
	}
	return t.is.Model
}

// transcribes tells whether what the client says by voice is written down.
func (t *turns) transcribes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.is.Transcription != ""
}

// toCancel are the responses under way that were not told to end yet.
func (t *turns) toCancel() (ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, r := range t.running {
		if !r.cancelled {
			r.cancelled = true
			ids = append(ids, id)
		}
	}
	return ids
}

// cancels notes that a response was told to end.
func (t *turns) cancels(id string) {
	t.mu.Lock()
	if r := t.running[id]; r != nil {
		r.cancelled = true
	}
	t.mu.Unlock()
}

// quiet tells whether nothing is asked for or under way.
func (t *turns) quiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.awaited)+len(t.running) == 0
}

// leave books what is still open: what had begun by what came of it.
func (t *turns) leave() {
	t.mu.Lock()
	waiting, open := t.awaited, t.running
	t.awaited, t.running = nil, nil
	dones := make(map[string]*realtime.Done, len(open))
	for id, r := range open {
		d := &realtime.Done{ID: id, Status: "incomplete", Reason: "connection_lost"}
		t.estimate(d, r)
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

// eventID names an event that the gateway itself made.
func eventID(session string, n int) string {
	return "event_" + session + "_" + strconv.Itoa(n)
}
