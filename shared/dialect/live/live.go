// Package live defines which parts of forwarded sessions are read, message by message:
// those relevant for billing and for guardrails. Sessions are metered by the provider's
// reports. Each wire format is a package below.
package live

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// Wire reads the messages of one session. Client and Provider are each called by one
// goroutine, everything else by any.
type Wire interface {
	// Opens reads the first message of a client. The error is a 400 that explains why no
	// session begins with it.
	Opens(first []byte) (FirstMessage, error)
	// FirstMessage is the client's first message as it goes to the provider, which knows the model
	// by this name.
	FirstMessage(model string) []byte
	// Client reads a later message of the client. An error rejects the message.
	Client(message []byte) (Content, error)
	// Provider reads a message of the provider.
	Provider(message []byte) Content
	// EndOpen reports how everything that is still open has ended, when no more messages
	// will come.
	EndOpen() []Step
	// Busy reports whether billable work is in progress at the provider and its end would
	// be reported.
	Busy() bool
	// EndMessage returns the message that ends the session; nil if closing it suffices.
	EndMessage() []byte
	// Error returns a message about a fault for the client. id is the id of this message,
	// about the id of the client's message that caused it. It returns nil if the wire
	// format has no such message.
	Error(f *fault.Fault, id, about string) []byte
}

// FirstMessage is the content of a client's first message.
type FirstMessage struct {
	Model   string // @slug/model names the saved provider, too
	Demands Demands
	Steps   []Step // steps that are taken before anything is sent to the provider
}

// Demands is what a client requests besides the session itself.
type Demands struct {
	Models []string // models that work for the session
	// NoInputTranscript: the client's speech is not transcribed. NoOutputTranscript: the model's speech is not
	// transcribed either.
	NoInputTranscript, NoOutputTranscript bool
	// Unheld: the model's words cannot be held back until they are complete.
	Unheld bool
}

// Content is the relevant content of one message.
type Content struct {
	ID           string // of the client's message; "" when it has none
	Steps        []Step
	Demands      Demands
	Audio        bool   // of the client: the message brings sound
	Text         string // of the provider: a piece of the model's words
	Called       string // of the provider: arguments of the model's calls
	Voice        string // of the provider: a piece of the transcript of the client's speech
	Complete     bool   // all speech so far is complete
	Last         bool   // the provider sends nothing more
	ResumeHandle string // of the provider's: the handle that resumes the session
}

// Do is what a step does.
type Do uint8

// Steps.
const (
	Begins Do = iota + 1 // something that costs money has begun
	Grows                // it has used more, or may use more
	Ends                 // it has ended; Usage is final
)

// Step is one step of something that costs money: a response, or the time of a session.
type Step struct {
	Do      Do
	ID      string
	Model   string // the model that is charged; "": the session's
	Input   int64  // tokens, the most that it may read
	Output  int64  // tokens, the most that it may make; 0 means no limit is known
	Seconds int64  // the most that it may last
	Usage   pricing.Usage
	Served  chat.PriceFacts // how it was served
	Finish  string          // how it ended
}
