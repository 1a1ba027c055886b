package live

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// Wire reads the messages of one session. Client and Provider are each called by one
// goroutine, everything else by any.
type Wire interface {
	// Opens reads the first message of a client. The error is a 400 that says why no
	// session begins with it.
	Opens(first []byte) (Opening, error)
	// Opening is that message for the provider, which knows the model by this name.
	Opening(model string) []byte
	// Client reads a later message of the client's. The error refuses it.
	Client(message []byte) (Heard, error)
	// Provider reads a message of the provider's.
	Provider(message []byte) Heard
	// Wordy are the members of a client's messages whose texts are judged: see Texts.
	Wordy() map[string]bool
	// Left is how what is open has ended, now that nothing more is heard of it.
	Left() []Step
	// Busy tells whether something is under way at the provider that costs money and
	// whose end it would tell.
	Busy() bool
	// Bye asks the provider to end the session; nil: to leave it is enough.
	Bye() []byte
	// Error tells the client of a fault. id is that of the message, about that of the
	// client's own which it is about. nil: the wire has no such message.
	Error(f *fault.Fault, id, about string) []byte
}

// Opening is what a client's first message asks for.
type Opening struct {
	Model string // @slug/model names the saved provider, too
	Asks  Asks
	Steps []Step // that are taken before anything is sent to the provider
}

// Asks is what a client asks for beside the session itself.
type Asks struct {
	Models []string // that work for it
	// Unheard: what the client says by voice is not written down. Unsaid: neither is what
	// the model says.
	Unheard, Unsaid bool
	// Unheld: what the model says cannot be held back till it is whole.
	Unheld bool
}

// Heard is what one message says.
type Heard struct {
	ID    string // of the client's message; "" when it has none
	Steps []Step
	Asks  Asks
	Sound bool   // of the client's: it brings sound
	Said  string // of the provider's: a piece of what the model says
	Voice string // of the provider's: a piece of what the client has said by voice
	Whole bool   // what was said up to here is whole
	Last  bool   // the provider says nothing more
}

// Do is what a step does.
type Do uint8

// What steps do.
const (
	Begins Do = iota + 1 // something that costs money
	Grows                // it has used more, or may
	Ends                 // it has used what it has used
)

// Step is one step of something that costs money: a response, or the time of a session.
type Step struct {
	Do      Do
	ID      string
	Model   string // that it is charged as; "": the session's
	Input   int64  // tokens, the most that it may read
	Output  int64  // tokens, the most that it may make; 0: no bound is known
	Seconds int64  // the most that it may last
	Usage   pricing.Usage
	Served  chat.Served // how it was served
	Finish  string      // how it ended
}
