package usage

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"gateway/shared/blob"
	"gateway/shared/queue"
)

// Sink accepts a request's record. If Emit returns nil, the record reaches the worker at
// least once.
type Sink interface {
	Emit(ctx context.Context, r *Record) error
}

// BodyKey returns the key of a record's sealed bodies in the bucket if they are not in
// its event.
func BodyKey(r *Record) string {
	return "bodies/" + url.PathEscape(r.Org) + "/" + r.Start.UTC().Format("2006/01/02/15") + "/" + url.PathEscape(r.ID)
}

// spill moves sealed bodies that are too large for the event to the bucket.
func spill(ctx context.Context, b blob.Bucket, r *Record) error {
	if b == nil || len(r.Bodies) <= MaxInlineBody {
		return nil
	}
	return putBodies(ctx, b, r)
}

func putBodies(ctx context.Context, b blob.Bucket, r *Record) error {
	key := BodyKey(r)
	if err := b.Put(ctx, key, r.Bodies); err != nil {
		return fmt.Errorf("usage: bodies: %w", err)
	}
	r.Blob, r.Bodies = key, nil
	return nil
}

// inlineBodies reads the bodies from a journal's file into the message.
func inlineBodies(ctx context.Context, b blob.Bucket, r *Record) error {
	if r.Pack.Key == "" {
		return nil
	}
	if b == nil {
		return fmt.Errorf("usage: bodies of %s are in a bucket that this process does not have", r.ID)
	}
	from, _, err := b.Open(ctx, r.Pack.Key, r.Pack.Offset, r.Pack.Length)
	if err != nil {
		return fmt.Errorf("usage: bodies: %w", err)
	}
	defer from.Close()
	r.Bodies = make([]byte, r.Pack.Length)
	if _, err := io.ReadFull(from, r.Bodies); err != nil {
		return fmt.Errorf("usage: bodies: %w", err)
	}
	r.Pack = Pack{}
	return nil
}

// QueueSink sends each record as one message.
type QueueSink struct {
	Queue  queue.Queue
	Bucket blob.Bucket // for bodies above MaxInlineBody, and for those that make a message too large
}

// maxMessage leaves space for a queue's encoding of the body as text.
const maxMessage = queue.MaxBody * 3 / 4

// Emit sends the record.
func (s *QueueSink) Emit(ctx context.Context, r *Record) error {
	m, err := s.message(ctx, r)
	if err != nil {
		return err
	}
	return s.Queue.Send(ctx, m)
}

// Ingest sends journaled records, ten per call, so that a Worker can forward a journal to
// the queue.
func (s *QueueSink) Ingest(ctx context.Context, records []Record) error {
	messages := make([]queue.Outgoing, 0, 10)
	for i := range records {
		m, err := s.message(ctx, &records[i])
		if err != nil {
			return err
		}
		if messages = append(messages, m); len(messages) == cap(messages) || i == len(records)-1 {
			if err := s.Queue.Send(ctx, messages...); err != nil {
				return err
			}
			messages = messages[:0]
		}
	}
	return nil
}

func (s *QueueSink) message(ctx context.Context, r *Record) (queue.Outgoing, error) {
	if err := inlineBodies(ctx, s.Bucket, r); err != nil {
		return queue.Outgoing{}, err
	}
	if err := spill(ctx, s.Bucket, r); err != nil {
		return queue.Outgoing{}, err
	}
	event := r.AppendEvent(nil)
	if len(event) > maxMessage && len(r.Bodies) > 0 && s.Bucket != nil {
		if err := putBodies(ctx, s.Bucket, r); err != nil {
			return queue.Outgoing{}, err
		}
		event = r.AppendEvent(event[:0])
	}
	if len(event) > maxMessage {
		// A record that fits no message would block all later ones.
		r.trim()
		event = r.AppendEvent(event[:0])
	}
	if len(event) > maxMessage {
		return queue.Outgoing{}, fmt.Errorf("usage: an event of %d bytes exceeds a message's limit of %d", len(event), maxMessage)
	}
	return queue.Outgoing{Group: r.Org, Body: event}, nil
}

// maxAttempts is the number of first and of last attempts that trim retains.
const maxAttempts = 20

// trim drops explanatory parts of a record: attempts in the middle and the inputs of
// decisions. Its totals stay complete.
func (r *Record) trim() {
	if n := len(r.Attempts); n > 2*maxAttempts {
		r.Attempts = slices.Concat(r.Attempts[:maxAttempts], r.Attempts[n-maxAttempts:])
	}
	r.Draws, r.Measured, r.Breakers, r.Matches, r.Skips, r.Losses, r.Guards = nil, nil, nil, nil, nil, nil, nil
}

// Batch is the result of one call of a source. Done acknowledges it; otherwise its
// records are delivered again.
type Batch struct {
	Records []Record
	Done    func(context.Context) error
}

// maxBatchBytes limits the bodies of a batch in memory; the event that exceeds it is the
// batch's last.
const maxBatchBytes = 4 << 20

// Source delivers records to a worker. See Journal.Next for max and wait.
type Source interface {
	Next(ctx context.Context, max int, wait time.Duration) (Batch, error)
}

// QueueSource reads records from a queue. A message that is not a list of events goes to
// the queue's dead letters.
type QueueSource struct {
	Queue       queue.Queue
	Visibility  time.Duration              // how long a batch may take; 2 minutes if zero
	OnMalformed func(queue.Message, error) // called for messages that are not a list of events; may be nil
}

// longPoll is how long one call waits for messages (SQS allows 20 s).
const longPoll = 20 * time.Second

// Next returns the records of messages. Done deletes the messages.
func (s *QueueSource) Next(ctx context.Context, limit int, wait time.Duration) (Batch, error) {
	visibility := s.Visibility
	if visibility == 0 {
		visibility = 2 * time.Minute
	}
	var b Batch
	var taken []queue.Message
	var deadline time.Time
	held := 0
	for len(b.Records) < limit && held < maxBatchBytes {
		poll := time.Duration(0)
		switch {
		case wait == 0:
		case len(b.Records) == 0:
			poll = longPoll
		default:
			poll = min(max(0, time.Until(deadline)), longPoll)
		}
		messages, err := s.Queue.Receive(ctx, min(10, limit-len(b.Records)), poll, visibility)
		if err != nil {
			if len(b.Records) > 0 {
				break // process the received messages
			}
			return Batch{}, err
		}
		if len(b.Records) == 0 {
			deadline = time.Now().Add(wait)
		}
		for _, m := range messages {
			records, err := DecodeEvents(m.Body)
			if err != nil {
				if s.OnMalformed != nil {
					s.OnMalformed(m, err)
				}
				continue
			}
			b.Records = append(b.Records, records...)
			taken = append(taken, m)
			held += len(m.Body)
		}
		if len(messages) == 0 && (wait == 0 || len(b.Records) > 0) || len(b.Records) > 0 && !time.Now().Before(deadline) {
			break
		}
		if len(b.Records) == 0 && ctx.Err() != nil {
			return Batch{}, ctx.Err()
		}
	}
	b.Done = func(ctx context.Context) error {
		for len(taken) > 0 {
			n := min(10, len(taken))
			if err := s.Queue.Delete(ctx, taken[:n]...); err != nil {
				return err
			}
			taken = taken[n:]
		}
		return nil
	}
	return b, nil
}
