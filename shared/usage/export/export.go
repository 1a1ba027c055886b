// Package export writes the logs that a filter selects to a file.
//
// An export is a run of steps. A step holds the run by a lease, reads pages of logs after
// the run's cursor, and uploads them as parts of one multipart upload; after each part it
// saves cursor, parts and counts. A killed process loses only its current part. Memory is
// limited to one part and one page, regardless of the number of logs.
//
//	Runs     state of each run: start, cancel, get         (administration)
//	Worker   performs the steps that messages request      (worker)
//	lines    one log as a line: JSON or CSV
//	columns  Parquet
//
// The end of a Parquet file contains the offsets of all its columns. The metadata of a
// part, its index, is a separate object beside the part until the file is complete.
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

// Kind is the kind of the records of exports.
const Kind = exportrow.Kind

// Export is the stored definition of an export. Its progress is its Run.
type Export struct {
	Filters     json.RawMessage `json:"filters"` // as sent by the client
	Fields      []string        `json:"requested_data" min:"1"`
	Description string          `json:"description,omitempty" max:"1000"`
	Format      string          `json:"format,omitempty" enum:"jsonl,csv,parquet"`
	Compression string          `json:"compression,omitempty" enum:"none,gzip,snappy,zstd"` // default none; the last two for Parquet
}

// Gzip is the name of that compression.
const Gzip = "gzip"

// States of an export.
const (
	Draft   = "draft" // never started
	Running = "in_progress"
	Success = "success"
	Failed  = "failed"
	Stopped = "stopped"
)

// Order defines what a run writes. It is fixed when the run starts.
type Order struct {
	Filter report.Filter `json:"filter"`
	Offset int           `json:"offset,omitempty"` // logs to skip, newest first
	Limit  int           `json:"limit"`            // maximum number of logs
	Fields []string      `json:"fields"`           // see Fields
	Format string        `json:"format"`           // JSONL, CSV or Parquet
	Gzip   bool          `json:"gzip,omitempty"`   // the file, for formats of lines
	Codec  string        `json:"codec,omitempty"`  // of the pages of Parquet: Gzip, Snappy, Zstd
	Bodies bool          `json:"bodies,omitempty"` // a field needs the bodies
}

// Run is the progress of an export.
type Run struct {
	Status  string    `json:"status"`
	Attempt int64     `json:"attempt"` // number of starts
	Order   Order     `json:"order"`
	Rows    int64     `json:"rows"`
	Bytes   int64     `json:"bytes"` // of the file so far
	Key     string    `json:"key"`   // of the file in the bucket
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Error   string    `json:"error,omitempty"` // of a failed run, for users

	Cursor   string    `json:"cursor,omitempty"` // of the last log written; "" at the beginning and when all are read
	Read     bool      `json:"read,omitempty"`   // all logs are in the parts
	Upload   string    `json:"upload,omitempty"` // id; "" before the first part
	Tags     []string  `json:"tags,omitempty"`   // of the parts
	Holder   string    `json:"holder,omitempty"` // of the current step
	Until    time.Time `json:"until,omitzero"`   // its lease
	Restarts int       `json:"anew,omitempty"`   // number of restarts: see maxRestarts

	version int64
	gone    time.Time // when logs of the day of its start expire; zero means never
}

// FileLifetime is how long the file of an export can be downloaded.
const FileLifetime = 7 * 24 * time.Hour

// Expires returns when the file is deleted, which is no later than logs of the day on
// which the run started; zero if there is none.
func (r *Run) Expires() time.Time {
	if r.Status != Success {
		return time.Time{}
	}
	until := r.Ended.Add(FileLifetime)
	if !r.gone.IsZero() && r.gone.Before(until) {
		return r.gone
	}
	return until
}

// Fetchable reports whether there is a file.
func (r *Run) Fetchable(now time.Time) bool { return r.Status == Success && now.Before(r.Expires()) }

// lost reports whether the run is abandoned: the process that started it was killed
// before it sent the message, or the message became a dead letter.
func (r *Run) lost(now time.Time) bool {
	return r.Status == Running && now.After(r.Until.Add(lost)) && now.After(r.Started.Add(lost))
}

const lost = 20 * time.Minute

// Runs are the runs of all exports. It is safe for concurrent use.
type Runs struct {
	Store store.Store
	Queue queue.Queue // of the steps
	Now   func() time.Time
	// WorkspaceRetention returns the current log retention of workspaces; nil if none is
	// shorter.
	WorkspaceRetention func(context.Context, store.Scope) (usage.WorkspaceRetention, error)
	Longest            time.Duration // the installation's retention of data in files; 0 means forever
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

// put stores the run; ok is false if another process changed it meanwhile.
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

// Start starts a run and requests its first step. Errors: a 409 fault if one is in
// progress or a file exists.
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
	next.Status, next.Ended, next.Error = Failed, now, "It could not be sent to a worker"
	if _, perr := s.put(context.WithoutCancel(ctx), sc, id, next); perr != nil {
		err = fmt.Errorf("%w; %w", err, perr)
	}
	return fault.Unavailable(err)
}

// send requests a step.
func (s *Runs) send(ctx context.Context, m queue.Outgoing) error {
	if s.Queue == nil {
		return errors.New("export: this installation has no queue for exports")
	}
	return s.Queue.Send(ctx, m)
}

// fileKey returns the key of a run's file, which begins with the day, by which files are
// swept.
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

// noWorkspace replaces the workspace in the keys of an organization's exports.
const noWorkspace = "organisation"

func conflict(message string) error { return fault.New(fault.Conflict, "exportId", message) }

// Cancel stops a run; the current step stops at its next part. Errors: a 409 fault if
// none is in progress.
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

// Delete deletes the run and the file of a deleted export, which invalidates links to it.
func (s *Runs) Delete(ctx context.Context, b blob.Bucket, sc store.Scope, id string) error {
	runs, err := s.Get(ctx, sc, id)
	if err != nil {
		return err
	}
	if key := runs[id].Key; key != "" {
		err = b.Delete(ctx, key)
	}
	return errors.Join(err, s.Store.Table(store.Control).Delete(ctx, exportrow.Run(sc, id)))
}

// step is the content of a message.
type step struct {
	Org       string `json:"org"`
	Workspace string `json:"workspace,omitempty"`
	Export    string `json:"export"`
	Attempt   int64  `json:"attempt"`
}

func (s step) scope() store.Scope { return store.Scope{Org: s.Org, Workspace: s.Workspace} }

// stepMessage returns the request for a step of a run.
func stepMessage(sc store.Scope, id string, attempt int64) queue.Outgoing {
	body, _ := json.Marshal(step{sc.Org, sc.Workspace, id, attempt}) // strings and a number always encode
	out := queue.Outgoing{Group: sc.Org, Body: body}
	if out.Check() != nil {
		out.Group = "" // an organization id that is not a valid group
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
