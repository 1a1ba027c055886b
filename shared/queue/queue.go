// Package queue is the gateway's only way to pass work to a later process: messages are
// delivered at least once, in no order, hidden while they are processed, and moved to a
// dead-letter queue after too many attempts.
//
// queue/sqs uses SQS standard queues, queue/local stores messages in a SQLite file; both pass
// testkit/queuetest.
package queue

import (
	"context"
	"time"
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
