// Package session carries a realtime session between a client and a provider: each message is
// read completely, inspected, and forwarded unchanged. A Controller admits each response and charges
// it separately.
//
// Two goroutines read, one on each side, and write to the other: a side that does not read
// blocks the other. Neither outlives Run.
package session

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"gateway/shared/dialect/realtime"
	"gateway/shared/dialect/reference"
	"gateway/shared/egress"
	"gateway/shared/fault"
)

// Times of sessions.
type Times struct {
	Check time.Duration // how often the controller checks whether the session may continue
	Ping  time.Duration // how often both sides are
	Drain time.Duration // how long a response is still read after its client has disconnected
	Open  time.Duration // how long a client may take to send a first message that names the model
}

// DefaultTimes are the times that hold outside of tests.
var DefaultTimes = Times{Check: 450 * time.Millisecond, Ping: 20 * time.Second, Drain: 10 * time.Second, Open: 10 * time.Second}

// Limits of one message, in bytes. OpenAI accepts events of 15 MB.
const (
	MaxFromClient   = 16 << 20
	MaxFromProvider = 64 << 20
)

// Session is one session. All fields up to ID are required.
type Session struct {
	Client, Provider Conn // the client, the provider
	Controller       Controller
	Times            Times
	Memory           *egress.Memory // of large messages
	Tenant           string         // the organization charged for the memory
	ID               string         // for ids of the gateway's own events
	Model            string         // the model requested from the provider
	Names            []string       // other names of it by which the client may have opened the session
	Guard            Guard          // nil: nothing is judged
	FirstMessage     []byte         // an event that counts as the client's first; nil: none

	turns   turns
	state   standing
	context context.Context
}

// Result is how a session ended.
type Result struct {
	Code       int
	Reason     string
	ByClient   bool // it was the client who left
	ByProvider bool // it was the provider, whatever its code
	Fault      *fault.Fault
	FromClient int64 // bytes of its messages
	ToClient   int64
}

// Run forwards messages until a side disconnects, the controller ends the session, or Drain has. All
// started responses are charged when it returns.
func (s *Session) Run(ctx context.Context) Result {
	var stop context.CancelFunc
	s.context, stop = context.WithCancel(ctx)
	defer stop()
	s.turns.begin(s.Model)
	watch := Watch{
		Times: s.Times, Checker: s.Controller, Done: s.state.isOver, Refuse: func(f *fault.Fault) { s.reject(f, "") }, Ends: []Conn{s.Client, s.Provider},
	}
	watch.Start()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.fromFar()
	}()
	fromNear := s.fromNear()
	s.clientLeft(fromNear)
	<-done
	watch.End()
	s.state.stopTimer()
	s.turns.leave()
	s.Provider.Drop()
	s.Client.Linger()
	return s.state.result(fromNear)
}

// fromNear reads the client until it disconnects or is disconnected.
func (s *Session) fromNear() error {
	var reader realtime.Reader
	said := func(binary bool, p []byte) error { return s.fromClient(&reader, binary, p) }
	if s.FirstMessage != nil {
		if err := said(false, s.FirstMessage); err != nil {
			return err
		}
	}
	in := inlet{conn: s.Client, most: MaxFromClient}
	in.lease.Of(s.Memory, s.Tenant)
	return in.each(s.context, said)
}

// fromClient judges a message of the client and forwards it.
func (s *Session) fromClient(reader *realtime.Reader, binary bool, p []byte) error {
	if s.state.took(len(p)) {
		return nil // the end was already sent to the client
	}
	if !binary && !utf8.Valid(p) {
		return &Ended{NotUTF8, "a text message must be UTF-8"}
	}
	e, err := reader.Read(p)
	id := e.ID // also of an event that a guardrail changes
	var asked Reservation
	if err == nil {
		p, err = s.guarded(reader, &e)
	}
	if err == nil {
		err = s.Controller.Names(p)
	}
	if err == nil {
		asked, err = s.judge(&e)
	}
	if err == nil {
		p, err = s.named(&e, p)
	}
	if err != nil {
		s.reject(fault.From(err), id)
		return nil
	}
	if asked != nil {
		s.turns.await(asked, id)
	}
	if err := s.Provider.Write(binary, p); err != nil {
		return nil // the provider is gone; its reader reports why
	}
	return nil
}

// guarded has a client event judged. A replacement is parsed again.
func (s *Session) guarded(reader *realtime.Reader, e *realtime.Event) ([]byte, error) {
	if s.Guard == nil {
		return e.Body, nil
	}
	now, err := s.Guard.Client(e, s.turns.transcribes())
	if err != nil || now == nil {
		return e.Body, err
	}
	*e, err = reader.Read(now)
	return now, err
}

// judge inspects a client event. It returns the turn of a response that the event requests.
func (s *Session) judge(e *realtime.Event) (Reservation, error) {
	switch e.Type {
	case realtime.SessionUpdate, realtime.SessionOld:
		asks, err := e.Session()
		if err != nil {
			return nil, err
		}
		if err := s.mayUse(&asks); err != nil {
			return nil, err
		}
		s.turns.names(&asks)
		return nil, nil
	case realtime.ResponseCreate:
		asks, err := e.ResponseRequest()
		if err != nil {
			return nil, err
		}
		if err := once(asks.DuplicateField); err != nil {
			return nil, err
		}
		return s.begin(&asks, e.Body)
	default:
		s.turns.countInput(e.Added())
	}
	return nil, nil
}

// named returns an event, with bytes p, as it is sent to the provider: if the session repeats
// its model by the client's name, that is replaced by the provider's. Clients such as
// @openai/agents-realtime send the model with which they opened the session.
func (s *Session) named(e *realtime.Event, p []byte) ([]byte, error) {
	if e.Type != realtime.SessionUpdate && e.Type != realtime.SessionOld {
		return p, nil
	}
	asks, err := e.Session()
	if err != nil || asks.Model == "" || asks.Model == s.Model {
		return p, err
	}
	return e.WithModel(s.Model)
}

// mayUse rejects models that the session may not switch to.
func (s *Session) mayUse(asks *realtime.Session) error {
	if asks.Model != "" && asks.Model != s.Model && !slices.Contains(s.Names, asks.Model) {
		return fault.Newf(fault.InvalidRequest, "session.model", "must be %q, the model that the session was opened for", fault.Clip(s.Model, 200))
	}
	if err := once(asks.DuplicateField); err != nil || asks.Transcription == "" {
		return err
	}
	return s.Controller.Allows(asks.Transcription)
}

// once rejects a field that is given in two spellings: what is checked must be what the provider
// reads.
func once(twice string) error {
	if twice == "" {
		return nil
	}
	return fault.New(fault.InvalidRequest, twice, "is sent in two spellings; send the one that the provider reads")
}

// begin has a response admitted. event is the client's request for it; nil if there is none.
func (s *Session) begin(asks *realtime.ResponseRequest, event []byte) (Reservation, error) {
	if s.state.isDraining() {
		return nil, &fault.Fault{Code: fault.ServiceUnavailable, Message: "The gateway is restarting; open a new session", RetryAfter: time.Second}
	}
	if err := s.turns.checkOpen(); err != nil {
		return nil, err
	}
	heldIn, output := s.turns.unboundedInput(), asks.MaxOutput
	if tools := reference.FindHosted(event); heldIn == "" && len(tools) > 0 {
		heldIn = tools[0].Field
	}
	if output == 0 && !asks.Unbounded {
		output = s.turns.bound()
	}
	return s.Controller.Reserve(&ResponseLimits{Input: s.turns.input() + int64(len(event)), UnboundedField: heldIn, Output: output, Unbounded: asks.Unbounded, Event: event})
}

// reject reports a fault to the client, and ends the session if the fault does.
func (s *Session) reject(f *fault.Fault, about string) {
	if !Refused(f) {
		s.tell(f, about)
		return
	}
	BeforeClosing(func() { s.tell(f, about) })
	s.end(Policy, f.Message, f)
}

// closeTimeout is how long a client that is being disconnected has to receive the reason.
const closeTimeout = 500 * time.Millisecond

// BeforeClosing sends a client the reason before it is disconnected, without waiting long for it.
func BeforeClosing(tell func()) {
	told := make(chan struct{})
	go func() { // ends when the client has received it, or is gone
		defer close(told)
		tell()
	}()
	late := time.NewTimer(closeTimeout)
	defer late.Stop()
	select {
	case <-told:
	case <-late.C:
	}
}

func (s *Session) tell(f *fault.Fault, about string) {
	n, over := s.state.event()
	if over {
		return
	}
	var told []byte
	if id := eventID(s.ID, n); f.Code == fault.GuardrailDenied && s.Guard != nil {
		told = s.Guard.Refusal(f, id, about)
	} else {
		told = realtime.AppendError(nil, f, id, about)
	}
	_ = s.Client.Write(false, told) // a client that is gone is detected by its reader
}

// fromFar reads the provider until it disconnects, or until the work left by a disconnected
// client is done.
func (s *Session) fromFar() {
	var reader realtime.Reader
	in := inlet{conn: s.Provider, most: MaxFromProvider}
	in.lease.Of(s.Memory, s.Tenant)
	s.providerLeft(in.each(s.context, func(binary bool, p []byte) error { return s.fromProvider(&reader, binary, p) }))
}

// fromProvider processes a provider event and forwards it. Its cost is recorded before the
// client has it.
func (s *Session) fromProvider(reader *realtime.Reader, binary bool, p []byte) error {
	s.state.markBusy(true)
	err := s.takes(reader, binary, p)
	s.state.markBusy(false)
	if err == nil {
		s.leaveWhenDone()
	}
	return err
}

func (s *Session) takes(reader *realtime.Reader, binary bool, p []byte) error {
	if !binary && !utf8.Valid(p) {
		return &Ended{NotUTF8, "a text message must be UTF-8"}
	}
	e, err := reader.Read(p)
	judged := Judgement{Unchanged: err == nil || s.Guard == nil || !s.Guard.JudgesResponses()} // a message that is not an event cannot be judged
	if err == nil {
		if s.Guard != nil {
			judged = s.Guard.Provider(&e)
		}
		if judged.Err != nil {
			return NoMemory(judged.Err)
		}
		if judged.Body != nil {
			e = e.WithBody(judged.Body)
		}
		s.learn(&e)
	}
	for _, back := range judged.Back {
		_ = s.Provider.Write(false, back) // a provider that is gone is detected by its reader
	}
	if judged.Unchanged {
		s.send(binary, p)
	}
	for _, told := range judged.Replies {
		s.send(false, told)
	}
	return nil
}

// send sends the client a message, unless the session is over.
func (s *Session) send(binary bool, p []byte) {
	if s.state.countSent(len(p)) {
		if err := s.Client.Write(binary, p); err != nil {
			s.clientLeft(&Ended{CloseAbnormal, ""})
		}
	}
}

// learn records the state that a provider event reports.
func (s *Session) learn(e *realtime.Event) {
	switch e.Type {
	case realtime.SessionCreated, realtime.SessionUpdated, realtime.SessionUpdateOld:
		if is, err := e.Session(); err == nil {
			s.turns.isNow(&is)
		}
	case realtime.ResponseCreated:
		s.created(e)
	case realtime.ResponseDone:
		d, err := realtime.ReadResponse(e.Body)
		if err != nil {
			s.Controller.Fail("event of a response", err)
		}
		switch t, known := s.turns.done(&d); {
		case t != nil:
			t.End(&d, e.Body)
		case known && d.Usage.IsReported():
			s.Controller.ChargeLate(&d, e.Body)
		}
	case realtime.Transcribed:
		if t, err := realtime.ReadTranscript(e.Body); err == nil && s.turns.first(t.Item) {
			s.Controller.ChargeTranscript(&t, s.turns.transcriber(), e.Body)
		}
	case realtime.Failed:
		if about, f := realtime.ErrorOf(e.Body); f != nil {
			if t := s.turns.failed(about); t != nil {
				t.Drop(f)
			}
		}
	default:
		if e.Delta > 0 && e.Response != "" {
			s.turns.made(e.Response, e.Delta, e.Audio())
		}
	}
}

// created finds the turn of a response that has started. One that was not requested is admitted
// now, or canceled.
func (s *Session) created(e *realtime.Event) {
	d, err := realtime.ReadResponse(e.Body)
	if err != nil || !s.turns.unseen(d.ID) {
		return
	}
	if s.turns.created(d.ID) {
		s.cancelLeft()
		return
	}
	t, err := s.begin(new(realtime.ResponseRequest), nil)
	s.turns.open(d.ID, t)
	if err == nil {
		s.cancelLeft()
		return
	}
	s.turns.cancels(d.ID)
	_ = s.Provider.Write(false, realtime.Cancel(d.ID)) // a provider that is gone is detected by its reader
	s.reject(fault.From(err), "")
}
