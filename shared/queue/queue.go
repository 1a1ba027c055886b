// Package queue is the gateway's only way to pass work to a later process: messages are
// delivered at least once, in no order, hidden while they are processed, and moved to a
// dead-letter queue after too many attempts.
//
// queue/sqs uses SQS standard queues, queue/local stores messages in a SQLite file; both pass
// testkit/queuetest.
package queue

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// MaxBody is the largest message body, in bytes (SQS: 1 MiB with attributes).
const MaxBody = 1 << 20

// Outgoing is a message to be sent. Group (the organization's id) prevents one tenant's backlog
// from delaying others; at most 128 characters.
type Outgoing struct {
	Group string
	Body  []byte
	Delay time.Duration // up to 15 minutes
}

// Message is a received message. Attempt counts deliveries from 1.
type Message struct {
	ID      string
	Group   string
	Body    []byte
	Attempt int
	Receipt string // names this delivery; used by Delete and Extend
}

// Queue is one queue. All methods are safe for concurrent use.
type Queue interface {
	// Send enqueues all messages, or returns an error with the number of accepted ones. When
	// messages are sent again, one may be delivered twice.
	Send(ctx context.Context, messages ...Outgoing) error
	// Receive waits up to wait (at most 20 s) for up to max (at most 10)
	// messages and hides them for visibility.
	Receive(ctx context.Context, max int, wait, visibility time.Duration) ([]Message, error)
	// Delete acknowledges deliveries.
	Delete(ctx context.Context, messages ...Message) error
	// Extend hides a delivery for d from now.
	Extend(ctx context.Context, m Message, d time.Duration) error
}

// Limits that both implementations enforce (SQS's own).
const (
	MaxGroup      = 128 // characters of Outgoing.Group
	MaxDelay      = 15 * time.Minute
	MaxVisibility = 12 * time.Hour
	MaxReceive    = 10 // messages of one Receive
	MaxWait       = 20 * time.Second
)

// ErrNotInFlight is returned by Extend for a delivery that is over: it was deleted,
// received again, or is visible again.
var ErrNotInFlight = errors.New("queue: the delivery is no longer in flight")

// ErrClosed is returned by a queue after its Close.
var ErrClosed = errors.New("queue: closed")

// SendError describes a Send that failed in part. The rejected messages may be sent again.
type SendError struct {
	Accepted int
	Rejected []int // indexes into the messages given to Send
	Cause    error
}

func (e *SendError) Error() string {
	return fmt.Sprintf("queue: %d of %d messages accepted: %v", e.Accepted, e.Accepted+len(e.Rejected), e.Cause)
}

func (e *SendError) Unwrap() error { return e.Cause }

// Check rejects what SQS would reject: a body above MaxBody as text (a binary body grows by
// a third, so it may have at most 786,429 bytes), a group that is too long or not printable
// ASCII, a delay out of range.
func (o *Outgoing) Check() error {
	if n := EncodedLen(o.Body); n > MaxBody {
		return fmt.Errorf("queue: body of %d bytes as text, at most %d are allowed", n, MaxBody)
	}
	if len(o.Group) > MaxGroup {
		return fmt.Errorf("queue: group of %d characters, at most %d are allowed", len(o.Group), MaxGroup)
	}
	for i := 0; i < len(o.Group); i++ {
		if c := o.Group[i]; c <= ' ' || c > '~' {
			return errors.New("queue: group has a character that is not printable ASCII")
		}
	}
	if o.Delay < 0 || o.Delay > MaxDelay {
		return fmt.Errorf("queue: delay of %s, 0 to %s are allowed", o.Delay, MaxDelay)
	}
	return nil
}

// CheckAll checks messages and names the first bad one by its index.
func CheckAll(messages []Outgoing) error {
	for i := range messages {
		if err := messages[i].Check(); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return nil
}

// SQS carries only text. A body that is text is sent as it is, so that JSON stays readable
// in the console and messages of other senders are understood. Every other body is sent as
// binaryMark and base64. A text that begins with the mark is sent as base64 too, so that
// decoding is unambiguous.
const binaryMark = '='

// EncodeBody gives the text that represents body in SQS.
func EncodeBody(body []byte) string {
	if isText(body) {
		return string(body)
	}
	out := make([]byte, 1+base64.StdEncoding.EncodedLen(len(body)))
	out[0] = binaryMark
	base64.StdEncoding.Encode(out[1:], body)
	return string(out)
}

// EncodedLen is len(EncodeBody(body)) without making it.
func EncodedLen(body []byte) int {
	if isText(body) {
		return len(body)
	}
	return 1 + base64.StdEncoding.EncodedLen(len(body))
}

// DecodeBody is the inverse of EncodeBody. A text that EncodeBody cannot have made is
// returned as it is.
func DecodeBody(text string) []byte {
	if text == "" || text[0] != binaryMark {
		return []byte(text)
	}
	body, err := base64.StdEncoding.Strict().DecodeString(text[1:])
	if err != nil {
		return []byte(text)
	}
	return body
}

// isText reports whether SQS takes body unchanged: not empty, valid UTF-8, and
// only #x9 | #xA | #xD | #x20-#xD7FF | #xE000-#xFFFD | #x10000-#x10FFFF.
func isText(body []byte) bool {
	if len(body) == 0 || body[0] == binaryMark {
		return false
	}
	for i := 0; i < len(body); {
		c := body[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && n == 1 || r == 0xFFFE || r == 0xFFFF {
			return false
		}
		i += n
	}
	return true
}
