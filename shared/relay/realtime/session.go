package realtime

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	wires "gateway/shared/dialect/live"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/relay/session"
)

// LiveSession is one session. All fields up to First are required.
type LiveSession struct {
	Client, Provider session.Conn // the client, the provider
	Wire             wires.Wire
	Controller       session.Controller
	Guardrails       func() Guardrails
	Times            session.Times
	Memory           *egress.Memory // of large messages
	Tenant           string         // the organization charged for the memory
	ID               string         // for ids of messages by the gateway itself
	Model            string         // the model of the upstream session
	FirstMessage     wires.FirstMessage
	First            int64 // bytes of the first message

	context context.Context
	stop    context.CancelFunc
	account account
	words   words

	mu      sync.Mutex
	begun   bool // the first message was sent to the provider
	over    bool // the client gets nothing more
	leaving bool // the provider has received the end message, or was disconnected
	ended   *session.Ended
	why     *fault.Fault
	left    error // with which the reader of the client ended; nil: the client was disconnected
	events  int
	late    *time.Timer // disconnects the provider when it fires, even if it is busy
	in, out int64       // bytes of messages from the client and to it
}

// Run forwards messages until a side disconnects, the controller ends the session, or Drain has. All
// started responses are charged when it returns.
func (s *LiveSession) Run(ctx context.Context) session.Result {
	s.context, s.stop = context.WithCancel(ctx)
	s.in = s.First
	s.account = account{desk: s.Controller}
	err := s.begin()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.fromFar()
	}()
	watch := session.Watch{
		Times: s.Times, Checker: s.Controller, Done: s.isOver, Refuse: func(f *fault.Fault) { s.reject(f, "") }, Ends: []session.Conn{s.Client, s.Provider},
	}
	watch.Start()
	if err != nil {
		s.sendAway(fault.From(err))
		s.Provider.Drop()
	}
	fromNear := s.fromNear()
	s.clientLeft(fromNear)
	<-done
	s.stop()
	watch.End()
	s.mu.Lock()
	if s.late != nil {
		s.late.Stop()
	}
	s.mu.Unlock()
	if s.begun {
		_ = s.account.take(s.Wire.EndOpen(), nil) // an ending charge is not rejected
	}
	s.account.leave()
	s.words.free()
	s.Provider.Drop()
	s.Client.Linger()
	return s.result(fromNear)
}

// begin forwards the client's first message once it is judged and its charges are reserved.
func (s *LiveSession) begin() error {
	if err := s.may(&s.FirstMessage.Demands); err != nil {
		return err
	}
	if err := s.words.opens(s, &s.FirstMessage.Demands); err != nil {
		return err
	}
	first, err := s.words.written(s, s.Wire.FirstMessage(s.Model))
	if err != nil {
		return err
	}
	if err := s.Controller.Names(first); err != nil {
		return err
	}
	if err := s.account.take(s.FirstMessage.Steps, nil); err != nil {
		return err
	}
	s.mu.Lock()
	s.begun = true
	s.mu.Unlock()
	_ = s.Provider.Write(false, first) // a provider that is gone is detected by its reader
	return nil
}

// may rejects models that the session may not use.
func (s *LiveSession) may(asks *wires.Demands) error {
	for _, model := range asks.Models {
		if err := s.Controller.Allows(model); err != nil {
			return err
		}
	}
	return nil
}

func (s *LiveSession) result(fromNear error) session.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.ended
	if e == nil {
		e = &session.Ended{Code: session.CloseAbnormal}
		errors.As(fromNear, &e)
	}
	return session.Result{Code: e.Code, Reason: e.Reason, ByClient: s.ended == nil, Fault: s.why, FromClient: s.in, ToClient: s.out}
}

// fromNear reads the client until it disconnects or is disconnected.
func (s *LiveSession) fromNear() error {
	var lease egress.Lease
	lease.Of(s.Memory, s.Tenant)
	defer lease.Free()
	for {
		binary, buf, err := message(s.context, s.Client, &lease, session.MaxFromClient)
		if err != nil {
			return err
		}
		err = s.clientSaid(binary, buf.B)
		buf.Free()
		lease.Free()
		if err != nil {
			return err
		}
	}
}

// clientSaid judges a message of the client and forwards it.
func (s *LiveSession) clientSaid(binary bool, p []byte) error {
	s.mu.Lock()
	s.in += int64(len(p))
	over := s.over
	s.mu.Unlock()
	if over {
		return nil // the end was already sent to the client
	}
	if !utf8.Valid(p) { // events in binary messages are JSON, too
		return &session.Ended{Code: session.NotUTF8, Reason: "a message must be UTF-8"}
	}
	h, err := s.Wire.Client(p)
	if err == nil {
		err = s.may(&h.Demands)
	}
	if err == nil {
		err = s.Controller.Names(p)
	}
	if err == nil && h.Audio {
		err = s.words.sounds(s)
	}
	if err == nil { // a message may contain both text and audio
		p, err = s.words.written(s, p)
	}
	if err == nil {
		err = s.account.take(h.Steps, nil)
	}
	if err != nil {
		s.reject(fault.From(err), h.ID)
		return nil
	}
	_ = s.Provider.Write(binary, p) // a provider that is gone is detected by its reader
	return nil
}

// fromFar reads the provider until it disconnects.
func (s *LiveSession) fromFar() {
	var lease egress.Lease
	lease.Of(s.Memory, s.Tenant)
	defer lease.Free()
	for {
		binary, buf, err := message(s.context, s.Provider, &lease, session.MaxFromProvider)
		if err != nil {
			s.providerLeft(err)
			return
		}
		s.fromProvider(binary, buf.B)
		buf.Free()
		lease.Free()
	}
}

// fromProvider records the charges in a message, and forwards it.
func (s *LiveSession) fromProvider(binary bool, p []byte) {
	h := s.Wire.Provider(p)
	err := s.account.take(h.Steps, p)
	if h.ResumeHandle != "" {
		if unnoted := s.Controller.RecordHandle(h.ResumeHandle); unnoted != nil {
			s.reject(fault.From(unnoted), "")
			return // its owner could not be recorded, so it is not sent
		}
	}
	told, denied := s.words.judgeOutput(s, &h, binary, p)
	for _, m := range told {
		s.give(m.binary, m.body)
	}
	switch {
	case err != nil:
		s.reject(fault.From(err), "")
	case denied != nil:
		s.reject(denied, "")
	}
	if h.Last || s.isOver() && !s.Wire.Busy() {
		s.leave()
	}
}

// give sends the client a message, unless the session is over.
func (s *LiveSession) give(binary bool, p []byte) {
	s.mu.Lock()
	over := s.over
	if !over {
		s.out += int64(len(p))
	}
	s.mu.Unlock()
	if !over {
		if err := s.Client.Write(binary, p); err != nil {
			s.clientLeft(&session.Ended{Code: session.CloseAbnormal})
		}
	}
}

// reject reports a fault to the client. The provider may already have started the requested
// work, which cannot be undone; so the session ends on faults of keys, money and limits, and if
// the wire has no event for others.
func (s *LiveSession) reject(f *fault.Fault, about string) {
	s.mu.Lock()
	s.events++
	id, over := "event_"+s.ID+"_"+strconv.Itoa(s.events), s.over
	s.mu.Unlock()
	if over {
		return
	}
	told := s.Wire.Error(f, id, about)
	ends := told == nil || session.Refused(f) || f.Status() == 429 || f.Code == fault.GuardrailDenied && about == ""
	if told != nil {
		s.tell(told, ends)
	}
	if ends {
		s.end(CloseCode(f), reason(f), f)
	}
}

// sendAway sends the client the reason why the session does not start.
func (s *LiveSession) sendAway(f *fault.Fault) {
	if told := s.Wire.Error(f, "event_"+s.ID, ""); told != nil {
		s.tell(told, true)
	}
	s.end(CloseCode(f), reason(f), f)
}

func (s *LiveSession) tell(told []byte, ends bool) {
	write := func() { _ = s.Client.Write(false, told) } // a client that is gone is detected by its reader
	if ends {                                           // the client is disconnected, so its read is not waited for
		session.BeforeClosing(write)
	} else {
		write()
	}
}

func (s *LiveSession) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// end disconnects the client. Work in progress at the provider is read to its end and charged;
// then the provider is disconnected.
func (s *LiveSession) end(code int, reason string, why *fault.Fault) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over, s.ended, s.why = true, &session.Ended{Code: code, Reason: reason}, why
	s.mu.Unlock()
	s.Client.Close(code, reason)
	s.part()
}

// clientLeft ends the session after the client has disconnected: nothing more is sent to it.
func (s *LiveSession) clientLeft(err error) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over, s.left = true, err
	s.mu.Unlock()
	session.CloseNear(s.Client, err)
	s.part()
}

// part disconnects the provider once it has reported all work in progress, or after a while.
func (s *LiveSession) part() {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if !begun || !s.Wire.Busy() {
		s.leave()
		return
	}
	s.mu.Lock()
	first := s.late == nil
	if first {
		s.late = time.AfterFunc(s.Times.Drain, s.Provider.Drop)
	}
	s.mu.Unlock()
	if bye := s.Wire.EndMessage(); first && bye != nil {
		_ = s.Provider.Write(false, bye) // a provider that is gone is detected by its reader
	}
}

// leave disconnects an idle provider after the client has disconnected.
func (s *LiveSession) leave() {
	s.mu.Lock()
	leaves := s.over && !s.leaving
	s.leaving = s.leaving || leaves
	left := s.left
	s.mu.Unlock()
	if leaves {
		s.Provider.Close(session.UpstreamClose(left))
	}
}

// providerLeft reports to the client how the provider has ended the session.
func (s *LiveSession) providerLeft(err error) {
	code, reason := session.CloseForClient(s.Provider, err)
	s.end(code, reason, nil)
	s.Provider.Drop()
}

// Drain implements session.Closer: the session ends, and work in progress is charged.
func (s *LiveSession) Drain() { s.end(session.CloseGoingAway, session.Restarting, nil) }

// Break implements session.Closer.
func (s *LiveSession) Break() {
	s.end(session.CloseGoingAway, session.Restarting, nil)
	s.Provider.Drop()
}
