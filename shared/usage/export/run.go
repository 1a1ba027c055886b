package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gateway/shared/blob"
	"gateway/shared/fault"
	"gateway/shared/queue"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/export/exportrow"
	"gateway/shared/usage/report"
)

// States of an export.
const (
	Draft   = "draft" // never started
	Running = "in_progress"
	Success = "success"
	Failed  = "failed"
	Stopped = "stopped"
)

// Order is what a run writes. It is fixed when the run starts.
type Order struct {
	Filter report.Filter `json:"filter"`
	Offset int           `json:"offset,omitempty"` // logs to leave out, newest first
	Limit  int           `json:"limit"`            // logs to write at most
	Fields []string      `json:"fields"`           // see Fields
	Format string        `json:"format"`           // JSONL, CSV or Parquet
	Gzip   bool          `json:"gzip,omitempty"`   // the file, for formats of lines
	Codec  string        `json:"codec,omitempty"`  // of the pages of Parquet: Gzip, Snappy, Zstd
	Bodies bool          `json:"bodies,omitempty"` // a field needs what is sealed
}

// Run is how far an export has come.
type Run struct {
	Status  string    `json:"status"`
	Attempt int64     `json:"attempt"` // counts starts
	Order   Order     `json:"order"`
	Rows    int64     `json:"rows"`
	Bytes   int64     `json:"bytes"` // of the file so far
	Key     string    `json:"key"`   // of the file in the bucket
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Error   string    `json:"error,omitempty"` // of one that failed, for people

	Cursor string    `json:"cursor,omitempty"` // of the log that was written last; empty: at the beginning, or all is read
	Read   bool      `json:"read,omitempty"`   // all logs are in the parts
	Upload string    `json:"upload,omitempty"` // id; empty: no part was put
	Tags   []string  `json:"tags,omitempty"`   // of the parts
	Holder string    `json:"holder,omitempty"` // whose step is under way
	Until  time.Time `json:"until,omitzero"`   // its lease
	Anew   int       `json:"anew,omitempty"`   // how often it began anew: see maxAnew

	version int64
	gone    time.Time // when logs of the day of its start are kept no longer; zero: never
}

// Kept is how long the file of an export can be fetched.
const Kept = 7 * 24 * time.Hour

// Expires is when the file goes, which is no later than logs of the day on which it was
// started do; zero: there is none.
func (r *Run) Expires() time.Time {
	if r.Status != Success {
		return time.Time{}
	}
	until := r.Ended.Add(Kept)
	if !r.gone.IsZero() && r.gone.Before(until) {
		return r.gone
	}
	return until
}

// Fetchable tells whether there is a file.
func (r *Run) Fetchable(now time.Time) bool { return r.Status == Success && now.Before(r.Expires()) }

// lease is how long a step has for one part.
const lease = 3 * time.Minute

// lost tells that nobody continues a run: the process that started it was killed before it
// sent the message, or the message became a dead letter.
func (r *Run) lost(now time.Time) bool {
	return r.Status == Running && now.After(r.Until.Add(lost)) && now.After(r.Started.Add(lost))
}

const lost = 20 * time.Minute

// Runs are the runs of all exports. Safe for concurrent use.
type Runs struct {
	Store store.Store
	Queue queue.Queue // of the steps
	Now   func() time.Time
	// KeptDays tells for how many days workspaces keep their logs, as it is set now; nil:
	// for no time of their own.
	KeptDays func(context.Context, store.Scope) (usage.KeptDays, error)
	Longest  time.Duration // for how long the installation keeps what files may hold; 0: for ever
}

// Get reads runs by the ids of their exports. One that was never started is a Draft.
func (s *Runs) Get(ctx context.Context, sc store.Scope, ids ...string) (map[string]*Run, error) {
	keys := make([]store.Key, len(ids))
	for i, id := range ids {
		keys[i] = exportrow.Run(sc, id)
	}
	items, err := s.Store.Table(store.Control).GetMany(ctx, keys)
	if err != nil {
		return nil, err
	}
	out, days := make(map[string]*Run, len(ids)), 0
	if len(items) > 0 {
		if days, err = s.days(ctx, sc); err != nil {
			return nil, err
		}
	}
	for i, id := range ids {
		r := &Run{Status: Draft}
		if it, ok := items[keys[i]]; ok {
			if err := r.read(it); err != nil {
				return nil, err
			}
			r.gone = goneAt(r.Started, days)
		}
		out[id] = r
	}
	return out, nil
}

func (r *Run) read(it store.Item) error {
	if err := json.Unmarshal(it.Bytes("run"), r); err != nil {
		return fmt.Errorf("export: stored run: %w", err)
	}
	r.version = it.Int("version")
	return nil
}

// put stores the run unless somebody else did in between; then ok is false.
func (s *Runs) put(ctx context.Context, sc store.Scope, id string, r *Run) (ok bool, err error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return false, fmt.Errorf("export: %w", err)
	}
	cond := store.IfAbsent()
	if r.version > 0 {
		cond = store.IfEqual(store.At("version"), r.version)
	}
	row := store.Row{Key: exportrow.Run(sc, id), Item: store.Item{"run": raw, "version": r.version + 1}}
	err = s.Store.Table(store.Control).Put(ctx, row, cond)
	if _, taken := store.AsCondition(err); taken {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.version++
	return true, nil
}

// Start begins a run and asks for its first step. Errors: a 409 fault while one is
// under way, or where there is a file.
func (s *Runs) Start(ctx context.Context, sc store.Scope, id string, o Order) error {
	runs, err := s.Get(ctx, sc, id)
	if err != nil {
		return err
	}
	r, now := runs[id], s.Now()
	switch {
	case r.Status == Running && !r.lost(now):
		return conflict("This export is in progress")
	case r.Fetchable(now):
		return conflict("This export has succeeded; create another one, or download its file")
	}
	next := &Run{Status: Running, Attempt: r.Attempt + 1, Order: o, Started: now, version: r.version}
	next.Key = fileKey(sc, id, next)
	if ok, err := s.put(ctx, sc, id, next); err != nil || !ok {
		if err == nil {
			err = conflict("This export is in progress")
		}
		return err
	}
	if err = s.send(ctx, stepMessage(sc, id, next.Attempt)); err == nil {
		return nil
	}
	next.Status, next.Ended, next.Error = Failed, now, "It could not be handed to a worker"
	if _, perr := s.put(context.WithoutCancel(ctx), sc, id, next); perr != nil {
		err = fmt.Errorf("%w; %w", err, perr)
	}
	return fault.Unavailable(err)
}

// send asks for a step.
func (s *Runs) send(ctx context.Context, m queue.Outgoing) error {
	if s.Queue == nil {
		return errors.New("export: this installation has no queue for exports")
	}
	return s.Queue.Send(ctx, m)
}

// fileKey is where the file of a run goes: first the day, by which files are swept.
func fileKey(sc store.Scope, id string, r *Run) string {
	ext := r.Order.Format
	if r.Order.Gzip {
		ext += ".gz"
	}
	ws := sc.Workspace
	if ws == "" {
		ws = noWorkspace
	}
	return fmt.Sprintf("%s%s/%s/%s/%s-%d/logs.%s", prefix, r.Started.UTC().Format(time.DateOnly), sc.Org, ws, id, r.Attempt, ext)
}

const prefix = "exports/"

// noWorkspace stands for a workspace in the keys of an organisation's exports.
const noWorkspace = "organisation"

func conflict(message string) error { return fault.New(fault.Conflict, "exportId", message) }

// Cancel stops a run; the step under way finds out at its next part. Errors: a 409
// fault where none is under way.
func (s *Runs) Cancel(ctx context.Context, sc store.Scope, id string) error {
	for range 20 {
		runs, err := s.Get(ctx, sc, id)
		if err != nil {
			return err
		}
		r := runs[id]
		if r.Status != Running {
			return conflict("This export is not in progress")
		}
		r.Status, r.Ended = Stopped, s.Now()
		if ok, err := s.put(ctx, sc, id, r); err != nil || ok {
			return err
		}
	}
	return conflict("This export changes too fast; try again")
}

// Forget drops what is noted of an export that is deleted, and its file: links to it end
// with it.
func (s *Runs) Forget(ctx context.Context, b blob.Bucket, sc store.Scope, id string) error {
	runs, err := s.Get(ctx, sc, id)
	if err != nil {
		return err
	}
	if key := runs[id].Key; key != "" {
		err = b.Delete(ctx, key)
	}
	return errors.Join(err, s.Store.Table(store.Control).Delete(ctx, exportrow.Run(sc, id)))
}

// step is what a message says.
type step struct {
	Org       string `json:"org"`
	Workspace string `json:"workspace,omitempty"`
	Export    string `json:"export"`
	Attempt   int64  `json:"attempt"`
}

func (s step) scope() store.Scope { return store.Scope{Org: s.Org, Workspace: s.Workspace} }

// stepMessage asks for a step of a run.
func stepMessage(sc store.Scope, id string, attempt int64) queue.Outgoing {
	body, _ := json.Marshal(step{sc.Org, sc.Workspace, id, attempt}) // texts and a number
	out := queue.Outgoing{Group: sc.Org, Body: body}
	if out.Check() != nil {
		out.Group = "" // an organisation's id that no group can have
	}
	return out
}

// readStep reads the body of a message.
func readStep(body []byte) (s step, err error) {
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("export: message: %w", err)
	}
	if s.Org == "" || s.Export == "" {
		return s, fmt.Errorf("export: message without an export")
	}
	return s, nil
}
