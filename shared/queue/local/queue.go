package local

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"gateway/shared/queue"
)

// Queue is one queue of a File.
type Queue struct {
	file        *File
	name        string
	maxAttempts int
	turns       *turns // nil until the writer has read them; the writer's own

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a message may have become visible
}

var _ queue.Queue = (*Queue)(nil)

// Queue gives the queue with a name. A message that was delivered maxAttempts times without
// being deleted becomes a dead letter; 0: never. The same name gives the same queue, with
// the settings of the first call.
func (f *File) Queue(name string, maxAttempts int) *Queue {
	f.queuesMu.Lock()
	defer f.queuesMu.Unlock()
	q := f.queues[name]
	if q == nil {
		q = &Queue{file: f, name: name, maxAttempts: maxAttempts, changed: make(chan struct{})}
		f.queues[name] = q
	}
	return q
}

// Send enqueues all messages or none.
func (q *Queue) Send(ctx context.Context, messages ...queue.Outgoing) error {
	if err := queue.CheckAll(messages); err != nil {
		return err
	}
	if len(messages) == 0 {
		return ctx.Err()
	}
	err := q.file.do(ctx, func() error {
		if err := q.loadTurns(); err != nil {
			return err
		}
		now := q.file.now()
		for i := range messages {
			if err := q.insert(&messages[i], now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		rejected := make([]int, len(messages))
		for i := range rejected {
			rejected[i] = i
		}
		return &queue.SendError{Rejected: rejected, Cause: err}
	}
	q.wake()
	return nil
}

func (q *Queue) insert(m *queue.Outgoing, now int64) error {
	state := 0
	if m.Delay > 0 {
		state = 1
	}
	res, err := q.file.exec(stmtInsert, q.name, m.Group, state, q.turns.next(m.Group), now+m.Delay.Milliseconds(), now)
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	body := m.Body
	if body == nil {
		body = []byte{}
	}
	_, err = q.file.exec(stmtInsertBody, id, body)
	return err
}

// loadTurns reads the order from the file once.
func (q *Queue) loadTurns() error {
	if q.turns != nil {
		return nil
	}
	t := &turns{last: map[string]int64{}}
	first := int64(math.MaxInt64)
	err := q.file.each(stmtTurns, func(rows *sql.Rows) error {
		var group string
		var low, high int64
		if err := rows.Scan(&group, &low, &high); err != nil {
			return err
		}
		t.last[group] = high
		first = min(first, low)
		return nil
	}, q.name)
	if err != nil {
		return err
	}
	if len(t.last) > 0 {
		t.served = first - 1
	}
	q.turns = t
	return nil
}

// Receive waits up to wait for up to n messages. It wakes at once when a message is sent,
// redriven or becomes visible. n is limited to 1 to 10, wait to 0 to 20 s, visibility to 1
// s to 12 h.
func (q *Queue) Receive(ctx context.Context, n int, wait, visibility time.Duration) ([]queue.Message, error) {
	n = min(max(n, 1), queue.MaxReceive)
	wait = min(wait, queue.MaxWait)
	visibility = min(max(visibility, time.Second), queue.MaxVisibility)
	deadline := time.Now().Add(wait)
	for {
		q.mu.Lock()
		changed := q.changed
		q.mu.Unlock()
		var got []queue.Message
		var next int64
		err := q.file.do(ctx, func() (err error) {
			got, next, err = q.take(n, visibility)
			return err
		})
		if err != nil || len(got) > 0 {
			return got, err
		}
		if ok, err := q.wait(ctx, changed, deadline, next); !ok {
			return nil, err
		}
	}
}

// take hides up to n messages and returns them. If there are none, it returns the time
// (Unix milliseconds, 0: none) when the next one becomes visible. The writer calls it.
func (q *Queue) take(n int, visibility time.Duration) (got []queue.Message, next int64, err error) {
	f := q.file
	now := f.now()
	if err := q.loadTurns(); err != nil {
		return nil, 0, err
	}
	if _, err := f.exec(stmtReveal, q.name, q.maxAttempts, now); err != nil {
		return nil, 0, err
	}
	var ids []int64
	err = f.each(stmtReady, func(rows *sql.Rows) error {
		var m queue.Message
		var id, turn, deliveries int64
		if err := rows.Scan(&id, &m.Group, &turn, &m.Attempt, &deliveries, &m.Body); err != nil {
			return err
		}
		m.ID = strconv.FormatInt(id, 10)
		m.Attempt++
		m.Receipt = m.ID + "." + strconv.FormatInt(deliveries+1, 10)
		q.turns.serve(turn)
		ids = append(ids, id)
		got = append(got, m)
		return nil
	}, q.name, n)
	if err != nil {
		return nil, 0, err
	}
	until := now + visibility.Milliseconds()
	for _, id := range ids {
		if _, err := f.exec(stmtHide, id, until); err != nil {
			return nil, 0, err
		}
	}
	if len(ids) == 0 {
		err = f.each(stmtNext, func(rows *sql.Rows) error {
			var v sql.NullInt64
			err := rows.Scan(&v)
			next = v.Int64
			return err
		}, q.name)
	}
	return got, next, err
}

// wait returns true when it is worth trying again.
func (q *Queue) wait(ctx context.Context, changed chan struct{}, deadline time.Time, next int64) (bool, error) {
	left := time.Until(deadline)
	if left <= 0 {
		return false, nil
	}
	again := false // the timer ends when a message becomes visible
	if next > 0 {
		if d := time.UnixMilli(next).Sub(q.file.clock()); d < left {
			left, again = max(d, time.Millisecond), true
		}
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-changed:
		return true, nil
	case <-timer.C:
		return again, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-q.file.closing:
		return false, queue.ErrClosed
	}
}

func (q *Queue) wake() {
	q.mu.Lock()
	close(q.changed)
	q.changed = make(chan struct{})
	q.mu.Unlock()
}

// Delete acknowledges deliveries. A delivery that is over is ignored: the message belongs
// to whoever has it now.
func (q *Queue) Delete(ctx context.Context, messages ...queue.Message) error {
	type row struct{ id, delivery int64 }
	rows := make([]row, len(messages))
	for i := range messages {
		id, delivery, err := parseReceipt(messages[i].Receipt)
		if err != nil {
			return err
		}
		rows[i] = row{id, delivery}
	}
	return q.file.do(ctx, func() error {
		for _, r := range rows {
			n, err := q.file.affected(stmtDelete, r.id, q.name, r.delivery)
			if err == nil && n > 0 {
				_, err = q.file.exec(stmtDeleteBody, r.id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Extend hides a delivery for d from now; 0 gives the message back at once.
// queue.ErrNotInFlight when the delivery is over.
func (q *Queue) Extend(ctx context.Context, m queue.Message, d time.Duration) error {
	if d < 0 || d > queue.MaxVisibility {
		return fmt.Errorf("queue/local: extend by %s, 0 to %s are allowed", d, queue.MaxVisibility)
	}
	id, delivery, err := parseReceipt(m.Receipt)
	if err != nil {
		return err
	}
	var n int64
	err = q.file.do(ctx, func() error {
		now := q.file.now()
		n, err = q.file.affected(stmtExtend, id, q.name, delivery, now+d.Milliseconds(), now)
		return err
	})
	if err != nil {
		return err
	}
	if n == 0 {
		return queue.ErrNotInFlight
	}
	q.wake() // it may become visible earlier than a waiting receive expects
	return nil
}

// parseReceipt reads "<id>.<delivery>".
func parseReceipt(receipt string) (id, delivery int64, err error) {
	a, b, _ := strings.Cut(receipt, ".")
	id, errID := strconv.ParseInt(a, 10, 64)
	delivery, errDelivery := strconv.ParseInt(b, 10, 64)
	if errID != nil || errDelivery != nil {
		return 0, 0, fmt.Errorf("queue/local: receipt %q does not belong to this queue", receipt)
	}
	return id, delivery, nil
}

// turns orders the messages of a queue so that groups take turns. The next message of a
// group gets the turn after the group's last one, but at least the turn after the one that
// was served last. If a group with 1,000 waiting messages has the turns 1 to 1,000, the
// first message of another group gets turn 1 too. Only the writer uses it.
type turns struct {
	served int64            // turn of the latest message handed out
	last   map[string]int64 // latest turn given to each group
}

func (t *turns) next(group string) int64 {
	turn := max(t.served, t.last[group]) + 1
	if len(t.last) >= 4096 {
		for g, last := range t.last { // turns that were served have no effect any more
			if last <= t.served {
				delete(t.last, g)
			}
		}
	}
	t.last[group] = turn
	return turn
}

func (t *turns) serve(turn int64) { t.served = max(t.served, turn) }
