package notice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"gateway/shared/egress"
	"gateway/shared/store"
)

// Directory resolves the recipients of events.
type Directory interface {
	// Targets are the webhooks that an event in a scope may concern: the organization's and
	// the workspace's.
	Targets(ctx context.Context, sc store.Scope) ([]Target, error)
	// Target is one webhook with its secrets; ok is false when it no longer exists.
	Target(ctx context.Context, sc store.Scope, id string) (t *Target, ok bool, err error)
	// Addresses are the mail addresses of the users whom an event concerns.
	Addresses(ctx context.Context, e *Event) ([]string, error)
	// Names are the names of the resources of an event.
	Names(ctx context.Context, e *Event) (Names, error)
	// Disable disables a webhook after its receiver responded that it no longer exists.
	Disable(ctx context.Context, sc store.Scope, id, why string) error
}

// Worker turns events into deliveries and attempts them. Several may run concurrently, even with
// different clocks.
type Worker struct {
	Store     store.Store
	Directory Directory
	Transport http.RoundTripper // guarded against calls of internal addresses
	Mailer    Mailer            // nil: no mails are sent
	Now       func() time.Time
}

// Limits of the work.
const (
	// lease is the time after which another worker may repeat an attempt without a result.
	lease          = 2 * time.Minute
	attemptTimeout = 15 * time.Second
	// maxConcurrent is how many receivers are called concurrently.
	maxConcurrent = 8
	maxResponse   = 64 << 10
	maxMails      = 200 // of one event
	pageSize      = 100 // rows that are read at a time
)

// backoff is the delay between each attempt and the next, about three days in total. The
// attempt after the last delay is the final one.
var backoff = []time.Duration{
	time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Run does all work that is due now. Work that fails remains for the next run.
func (w *Worker) Run(ctx context.Context) error {
	r := &run{Worker: w, down: map[string]bool{}}
	var failed error
	for n := range queues {
		failed = errors.Join(failed, r.events(ctx, n))
	}
	for n := range queues {
		failed = errors.Join(failed, r.deliveries(ctx, n))
	}
	return failed
}

// run is one run of a worker.
type run struct {
	*Worker
	mu   sync.Mutex
	down map[string]bool // receivers that did not respond: their other deliveries wait for the next run
}

// each calls f with the due entries of a queue, a page at a time.
func (w *Worker) each(ctx context.Context, n int, f func([]store.Row) error) error {
	q := store.Query{Partition: queueOf(n), From: "0", To: fmt.Sprintf("%013d~", w.Now().UnixMilli()), Limit: pageSize}
	for {
		page, err := w.Store.Table(store.Control).Query(ctx, q)
		if err != nil {
			return fmt.Errorf("notice: %w", err)
		}
		if err := f(page.Rows); err != nil {
			return err
		}
		if page.Next == "" || ctx.Err() != nil {
			return ctx.Err()
		}
		q.After = page.Next
	}
}

// events creates the deliveries of due events.
func (r *run) events(ctx context.Context, n int) error {
	var failed error
	err := r.each(ctx, n, func(rows []store.Row) error {
		for _, row := range rows {
			raw := row.Item.Bytes("event")
			if raw == nil {
				continue
			}
			if err := r.fanOut(ctx, raw); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			failed = errors.Join(failed, r.Store.Table(store.Control).Delete(ctx, row.Key))
		}
		return nil
	})
	return errors.Join(failed, err)
}

// fanOut creates those deliveries of an event that do not exist yet.
func (r *run) fanOut(ctx context.Context, raw []byte) error {
	e := new(Event)
	if err := json.Unmarshal(raw, e); err != nil {
		slog.Error("an event cannot be read", "error", err.Error())
		return nil // trying again would not help
	}
	targets, err := r.Directory.Targets(ctx, e.Scope())
	if err != nil {
		return fmt.Errorf("notice: webhooks: %w", err)
	}
	named, err := r.Directory.Names(ctx, e)
	if err != nil {
		return fmt.Errorf("notice: names: %w", err)
	}
	body, err := payload(e, named)
	if err != nil {
		return fmt.Errorf("notice: encode: %w", err)
	}
	for i := range targets {
		if t := &targets[i]; t.takes(e) {
			if err := r.begin(ctx, e, &Delivery{scope: t.Scope, To: t.ID, ID: deliveryID(e, t.ID), Payload: body}); err != nil {
				return err
			}
		}
	}
	if r.Mailer == nil || e.Audience.empty() {
		return nil
	}
	people, err := r.Directory.Addresses(ctx, e)
	if err != nil {
		return fmt.Errorf("notice: people: %w", err)
	}
	if len(people) == 0 {
		return nil
	}
	subject, text := e.mail(named)
	for _, address := range people[:min(len(people), maxMails)] {
		d := &Delivery{scope: e.Scope().Organisation(), To: Mails, ID: deliveryID(e, address), Address: address, Subject: subject, Text: text}
		if err := r.begin(ctx, e, d); err != nil {
			return err
		}
	}
	return nil
}

// begin stores a new delivery, once.
func (r *run) begin(ctx context.Context, e *Event, d *Delivery) error {
	now := r.Now().UTC().Truncate(time.Millisecond)
	d.EventID, d.Type, d.Workspace, d.Created, d.Status, d.NextAt, d.expires = e.ID, e.Type, e.Workspace, e.At, Pending, &now, now.Add(Retention)
	row, err := d.row()
	if err != nil {
		return err
	}
	err = r.Store.Transact(ctx,
		store.Action{Table: store.Control, Put: &store.Put{Row: row, If: []store.Cond{store.IfAbsent()}}},
		store.Action{Table: store.Control, Put: &store.Put{Row: d.wait(now)}})
	if _, there := store.AsCondition(err); there {
		return nil
	}
	if err != nil {
		return fmt.Errorf("notice: %w", err)
	}
	return nil
}

// deliveries attempts the due deliveries of a queue.
func (r *run) deliveries(ctx context.Context, n int) error {
	var failed error
	err := r.each(ctx, n, func(rows []store.Row) error {
		free := make(chan struct{}, maxConcurrent)
		errs := make([]error, len(rows))
		var wg sync.WaitGroup
		for i, row := range rows {
			if row.Item.String("id") == "" {
				continue
			}
			free <- struct{}{}
			wg.Go(func() {
				errs[i] = r.attempt(ctx, row)
				<-free
			})
		}
		wg.Wait()
		failed = errors.Join(append(errs, failed)...)
		return nil
	})
	return errors.Join(failed, err)
}

// attempt attempts the delivery of a row of the queue once, unless another worker has claimed it.
func (r *run) attempt(ctx context.Context, row store.Row) error {
	sc := store.Scope{Org: row.Item.String("org"), Workspace: row.Item.String("ws")}
	to, id := row.Item.String("to"), row.Item.String("id")
	receiver := sc.Org + "/" + sc.Workspace + "/" + to
	if to != Mails && r.isDown(receiver) || ctx.Err() != nil {
		return nil
	}
	control := r.Store.Table(store.Control)
	it, ok, err := control.Get(ctx, deliveryKey(sc, to, id), true)
	if err != nil {
		return fmt.Errorf("notice: %w", err)
	}
	if !ok {
		return control.Delete(ctx, row.Key) // it has expired
	}
	d, err := decode(sc, it)
	if err != nil {
		slog.Error("a delivery cannot be read", "error", err.Error())
		return control.Delete(ctx, row.Key)
	}
	if d.Status != Pending {
		return control.Delete(ctx, row.Key)
	}
	held, won, err := r.claim(ctx, d, row.Key)
	if err != nil || !won {
		return err
	}
	began := r.Now()
	result := r.send(ctx, d, began)
	result.At, result.Millis = began.UTC().Truncate(time.Millisecond), max(r.Now().Sub(began).Milliseconds(), 0)
	if result.again && result.Status == 0 && to != Mails {
		r.setDown(receiver)
	}
	return r.record(context.WithoutCancel(ctx), d, held, result)
}

func (r *run) isDown(receiver string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down[receiver]
}

func (r *run) setDown(receiver string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down[receiver] = true
}

// claim takes a delivery for one attempt: of all workers that try, one wins. If that worker
// dies, the delivery is due again after the lease.
func (r *run) claim(ctx context.Context, d *Delivery, waits store.Key) (held store.Key, won bool, err error) {
	until := d.wait(r.Now().Add(lease))
	d.Tries++ // an attempt counts even if its worker dies
	d.Total++
	row, err := d.row()
	if err != nil {
		return held, false, err
	}
	err = r.Store.Transact(ctx,
		store.Action{Table: store.Control, Delete: &store.Delete{Key: waits, If: []store.Cond{store.IfPresent()}}},
		store.Action{Table: store.Control, Put: &store.Put{Row: until}},
		store.Action{Table: store.Control, Put: &store.Put{Row: row, If: []store.Cond{store.IfEqual(store.At("turn"), d.turn)}}})
	if _, lost := store.AsCondition(err); lost || errors.Is(err, store.ErrContended) {
		return held, false, nil
	}
	if err != nil {
		return held, false, fmt.Errorf("notice: %w", err)
	}
	d.turn++
	return until.Key, true, nil
}

// outcome is the result of an attempt.
type outcome struct {
	Attempt
	again bool          // another attempt may succeed
	after time.Duration // the least wait, if the receiver named one
}

// send makes the attempt.
func (r *run) send(ctx context.Context, d *Delivery, at time.Time) outcome {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if d.To == Mails {
		return r.mail(ctx, d)
	}
	t, ok, err := r.Directory.Target(ctx, d.scope, d.To)
	switch {
	case err != nil:
		slog.Warn("a webhook cannot be read", "id", d.To, "error", err.Error())
		return outcome{Attempt: Attempt{Error: "the webhook's settings could not be read"}, again: true}
	case !ok:
		return outcome{Attempt: Attempt{Error: "the webhook was deleted"}}
	case !t.Active && d.Type != Ping:
		return outcome{Attempt: Attempt{Error: "the webhook is disabled"}}
	}
	out := r.post(ctx, d, t, at)
	if out.Status == http.StatusGone {
		out.again, out.Error = false, "the receiver responded with 410 Gone; the webhook was disabled"
		if err := r.Directory.Disable(ctx, d.scope, d.To, "the receiver responded with status 410"); err != nil {
			slog.Warn("a webhook could not be disabled", "id", d.To, "error", err.Error())
			out.again, out.Error = true, "the receiver responded with 410 Gone"
		}
	}
	return out
}

func (r *run) mail(ctx context.Context, d *Delivery) outcome {
	if r.Mailer == nil {
		return outcome{Attempt: Attempt{Error: "no mail can be sent"}, again: true}
	}
	if err := r.Mailer.Send(ctx, Mail{To: []string{d.Address}, Subject: d.Subject, Text: d.Text}); err != nil {
		return outcome{Attempt: Attempt{Error: err.Error()}, again: true}
	}
	return outcome{}
}

func (r *run) post(ctx context.Context, d *Delivery, t *Target, at time.Time) outcome {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(d.Payload))
	if err != nil {
		return outcome{Attempt: Attempt{Error: "the address cannot be called"}}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "gateway-webhooks/1")
	sign(req.Header, "msg_"+d.ID, at, d.Payload, t.Secrets)
	resp, err := r.Transport.RoundTrip(req)
	if err != nil {
		why := "the receiver cannot be reached"
		switch {
		case egress.IsBlocked(err):
			why = "the gateway may not call the address"
		case errors.Is(err, context.DeadlineExceeded):
			why = "the receiver did not respond in time"
		}
		return outcome{Attempt: Attempt{Error: why}, again: true}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxResponse)) // so that the connection can be used again
	out := outcome{Attempt: Attempt{Status: resp.StatusCode}}
	if resp.StatusCode/100 != 2 {
		out.again, out.Error = true, "the receiver responded with status "+strconv.Itoa(resp.StatusCode)
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		out.after = min(time.Duration(n)*time.Second, backoff[len(backoff)-1])
	}
	return out
}

// record stores the result of an attempt. A worker that took longer than its lease finds
// that another one has taken over, and stores nothing.
func (r *run) record(ctx context.Context, d *Delivery, held store.Key, out outcome) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if d.Attempts = append(d.Attempts, out.Attempt); len(d.Attempts) > maxAttempts {
		d.Attempts = d.Attempts[len(d.Attempts)-maxAttempts:]
	}
	d.NextAt = nil
	var waitKey store.Key // the row by which it waits for the next attempt
	var actions []store.Action
	switch {
	case out.Error == "":
		d.Status = Delivered
	case !out.again || d.Tries > len(backoff):
		d.Status = Failed
	default:
		next := r.Now().Add(max(backoff[d.Tries-1], out.after)).UTC().Truncate(time.Millisecond)
		d.NextAt = &next
		wait := d.wait(next)
		actions = append(actions, store.Action{Table: store.Control, Put: &store.Put{Row: wait}})
		waitKey = wait.Key
	}
	if waitKey != held {
		actions = append(actions, store.Action{Table: store.Control, Delete: &store.Delete{Key: held}})
	}
	row, err := d.row()
	if err != nil {
		return err
	}
	actions = append(actions, store.Action{Table: store.Control, Put: &store.Put{Row: row, If: []store.Cond{store.IfEqual(store.At("turn"), d.turn)}}})
	err = r.Store.Transact(ctx, actions...)
	if _, slower := store.AsCondition(err); slower {
		return nil
	}
	if err != nil {
		return fmt.Errorf("notice: %w", err)
	}
	return nil
}
