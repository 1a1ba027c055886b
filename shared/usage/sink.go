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

// Sink takes a request's record. When Emit returns nil the record will reach
// the worker, at least once.
type Sink interface {
	Emit(ctx context.Context, r *Record) error
}

// BodyKey is where the sealed bodies of a record stand in the bucket when they
// do not ride in its event.
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

// takeOut reads the bodies that a journal left in its file: they ride in the
// message.
func takeOut(ctx context.Context, b blob.Bucket, r *Record) error {
	if r.Pack.Key == "" {
		return nil
	}
	if b == nil {
		return fmt.Errorf("usage: bodies of %s are in a bucket that is not known here", r.ID)
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
	Bucket blob.Bucket // for bodies above MaxInlineBody, and for whatever makes a message too large
}

// maxMessage leaves room for a queue's own encoding of the body as text.
const maxMessage = queue.MaxBody * 3 / 4

// Emit sends the record.
func (s *QueueSink) Emit(ctx context.Context, r *Record) error {
	m, err := s.message(ctx, r)
	if err != nil {
		return err
	}
	return s.Queue.Send(ctx, m)
}

// Ingest sends records that were journaled first, ten to a call, so that a
// Worker can forward a journal to the queue.
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
	if err := takeOut(ctx, s.Bucket, r); err != nil {
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
		// A record that no message can hold would stop all behind it.
		r.thin()
		event = r.AppendEvent(event[:0])
	}
	if len(event) > maxMessage {
		return queue.Outgoing{}, fmt.Errorf("usage: an event of %d bytes is over a message's limit of %d", len(event), maxMessage)
	}
	return queue.Outgoing{Group: r.Org, Body: event}, nil
}

// keptAttempts are the first and the last attempts of a record that was too large.
const keptAttempts = 20

// thin leaves out of a record what only explains it: of many attempts those in
// the middle, and the inputs of decisions. Its sums stay whole.
func (r *Record) thin() {
	if n := len(r.Attempts); n > 2*keptAttempts {
		r.Attempts = slices.Concat(r.Attempts[:keptAttempts], r.Attempts[n-keptAttempts:])
	}
	r.Draws, r.Measured, r.Breakers, r.Matches, r.Skips, r.Losses, r.Guards = nil, nil, nil, nil, nil, nil, nil
}

// Batch is what a source gave at once. Done acknowledges it; without Done its
// records come again.
type Batch struct {
	Records []Record
	Done    func(context.Context) error
}

// maxBatchBytes bounds the bodies that a batch holds in memory; the event that
// passes it is the batch's last.
const maxBatchBytes = 4 << 20

// Source gives records to a worker. See Journal.Next for max and wait.
type Source interface {
	Next(ctx context.Context, max int, wait time.Duration) (Batch, error)
}

// QueueSource reads records from a queue. A message that holds no events is
// left to the queue's dead letters.
type QueueSource struct {
	Queue      queue.Queue
	Visibility time.Duration              // how long a batch may take; 2 minutes when 0
	OnBad      func(queue.Message, error) // hears of messages that hold no events; may be nil
}

// longPoll is how long one call waits for messages (SQS allows 20 s).
const longPoll = 20 * time.Second

// Next gives records of messages. Done deletes the messages.
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
				break // what was received is worth working on
			}
			return Batch{}, err
		}
		if len(b.Records) == 0 {
			deadline = time.Now().Add(wait)
		}
		for _, m := range messages {
			records, err := DecodeEvents(m.Body)
			if err != nil {
				if s.OnBad != nil {
					s.OnBad(m, err)
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
