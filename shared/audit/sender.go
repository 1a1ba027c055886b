package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/queue"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// sweepAfter is the age at which a message still in the outbox is taken to have
// been left there by a process that died or could not reach the queue.
const sweepAfter = 5 * time.Second

// batch is how many messages are sent at a time.
const batch = 10

// Sender moves audit records from the outbox to the queue: right after their commit, or later
// by Sweep if that failed.
type Sender struct {
	resources *resource.Resources
	control   store.Table
	queue     queue.Queue
	left      atomic.Int64            // when a message last stayed in the outbox because the queue failed, in ms; 0: none did
	wake      chan []resource.Message // nil: sent before Change returns
}

// NewSender returns a Sender that r calls with the messages of every commit. They are sent
// before Change returns. It is for processes that are frozen between requests.
func NewSender(r *resource.Resources, q queue.Queue) *Sender {
	return newSender(r, q, nil)
}

func newSender(r *resource.Resources, q queue.Queue, wake chan []resource.Message) *Sender {
	s := &Sender{resources: r, control: r.Store().Table(store.Control), queue: q, wake: wake}
	r.OnOutbox(s.committed)
	return s
}

// NewBackgroundSender returns a Sender with a Run that sends, so that callers do not wait for
// the queue. It is for processes that run all the time.
func NewBackgroundSender(r *resource.Resources, q queue.Queue) *Sender {
	return newSender(r, q, make(chan []resource.Message, 256))
}

// committed takes the messages of a commit. Those that it cannot take stay in the outbox.
func (s *Sender) committed(ctx context.Context, ms []resource.Message) {
	if s.wake == nil {
		s.sendNow(ctx, ms)
		return
	}
	select {
	case s.wake <- ms:
	default:
	}
}

// sendNow sends the messages of a commit. When the queue works again after a failure, it also
// sends the remaining ones. If the process ends before that, the scheduled sweep does it.
func (s *Sender) sendNow(ctx context.Context, ms []resource.Message) {
	now := s.resources.Now()
	if err := s.send(ctx, ms); err != nil {
		s.left.Store(now.UnixMilli())
		s.logged(err)
		return
	}
	at := s.left.Load()
	if at == 0 {
		return
	}
	_, err := s.Sweep(ctx)
	s.logged(err)
	if err == nil && now.Sub(time.UnixMilli(at)) > sweepAfter { // Sweep leaves younger messages
		s.left.CompareAndSwap(at, 0)
	}
}

func (s *Sender) logged(err error) {
	if err != nil {
		slog.Error("audit records remain in the outbox for now", "error", err)
	}
}

// Run sends what commits hand over, and sweeps at every interval, until ctx ends.
func (s *Sender) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case ms := <-s.wake:
			s.logged(s.send(ctx, s.more(ms)))
		case <-tick.C:
			_, err := s.Sweep(ctx)
			s.logged(err)
		}
	}
}

// more adds other waiting messages, up to a batch.
func (s *Sender) more(ms []resource.Message) []resource.Message {
	for len(ms) < batch {
		select {
		case next := <-s.wake:
			ms = append(ms, next...)
		default:
			return ms
		}
	}
	return ms
}

// Record puts a record that belongs to no change into the outbox: of a rejected call, or of
// an event.
func (s *Sender) Record(ctx context.Context, org string, e Entry) error {
	e.complete(s.resources.Now(), org)
	body, err := json.Marshal(&e)
	if err != nil {
		return fmt.Errorf("audit: encode: %w", err)
	}
	m := s.resources.NewMessage(Topic, org, body)
	if err := s.control.Put(ctx, m.Row(), store.IfAbsent()); err != nil {
		return fmt.Errorf("audit: outbox: %w", err)
	}
	s.committed(ctx, []resource.Message{m})
	return nil
}

// Sweep sends what has been in the outbox for a while and returns how many messages it
// sent. It may run in several processes at once; records are then sent twice.
func (s *Sender) Sweep(ctx context.Context) (int, error) {
	until := ulid.MustNew(ulid.Timestamp(s.resources.Now().Add(-sweepAfter)), lastEntropy{}).String()
	sent := 0
	var failed error
	for shard := range resource.OutboxPartitions {
		n, err := s.sweepShard(ctx, shard, until)
		sent += n
		failed = errors.Join(failed, err)
	}
	return sent, failed
}

// lastEntropy makes the last ULID of a millisecond.
type lastEntropy struct{}

func (lastEntropy) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 0xff
	}
	return len(p), nil
}

func (s *Sender) sweepShard(ctx context.Context, shard int, until string) (int, error) {
	sent := 0
	q := store.Query{Partition: resource.OutboxPartition(shard), From: "0", To: until, Limit: 100}
	for {
		page, err := s.control.Query(ctx, q)
		if err != nil {
			return sent, fmt.Errorf("audit: outbox: %w", err)
		}
		ms := make([]resource.Message, 0, len(page.Rows))
		for _, row := range page.Rows {
			if m := resource.DecodeMessage(shard, row); m.Topic == Topic {
				ms = append(ms, m)
			}
		}
		if err := s.send(ctx, ms); err != nil {
			return sent, err
		}
		sent += len(ms)
		if page.Next == "" {
			return sent, nil
		}
		q.After = page.Next
	}
}

// send hands messages to the queue and takes them out of the outbox. After a failure
// between the two they are sent again.
func (s *Sender) send(ctx context.Context, ms []resource.Message) error {
	for len(ms) > 0 {
		part := ms[:min(batch, len(ms))]
		ms = ms[len(part):]
		out := make([]queue.Outgoing, 0, len(part))
		for _, m := range part {
			if m.Topic == Topic {
				out = append(out, queue.Outgoing{Group: group(m.Org), Body: m.Body})
			}
		}
		if len(out) == 0 {
			continue
		}
		if err := s.queue.Send(ctx, out...); err != nil {
			return fmt.Errorf("audit: send: %w", err)
		}
		for _, m := range part {
			if m.Topic != Topic {
				continue
			}
			if err := s.control.Delete(ctx, m.Key()); err != nil {
				return fmt.Errorf("audit: outbox: %w", err)
			}
		}
	}
	return nil
}

// group is the organization within the queue's bound on group names.
func group(org string) string { return org[:min(len(org), 128)] }
