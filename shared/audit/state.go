package audit

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// State is a resource as a change left it, with secrets masked. The audit log has one for each
// change, so that it alone determines the state of a resource at any time.
type State struct {
	Workspace string            `json:"workspace,omitempty"`
	Kind      resource.Kind     `json:"kind"`
	ID        string            `json:"id"`
	At        int64             `json:"at"` // Unix nanoseconds; see resource.Tx.Sequence
	Deleted   bool              `json:"deleted,omitempty"`
	Slug      string            `json:"slug,omitempty"`
	Name      string            `json:"name,omitempty"`
	Status    string            `json:"status,omitempty"`
	Version   int64             `json:"version,omitempty"`
	VersionID string            `json:"version_id,omitempty"`
	Labels    map[string]int64  `json:"labels,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
	Created   time.Time         `json:"created,omitzero"`
	Updated   time.Time         `json:"updated,omitzero"`
	CreatedBy string            `json:"created_by,omitempty"`
	UpdatedBy string            `json:"updated_by,omitempty"`
	Body      json.RawMessage   `json:"body,omitempty"` // the stored form
	Cut       bool              `json:"cut,omitempty"`  // the body was too large to be stored
}

// Bounds of states on their way, in bytes: messages of a queue carry 256 KB.
const (
	maxMessage = 96 << 10 // of states that go into one message
	maxState   = 160 << 10
	readStates = 50 // rows read at a time
)

// StateOf is the state of a record that a change leaves.
func StateOf(c *resource.Changed) State {
	s := State{Workspace: c.Scope.Workspace, Kind: c.Kind, ID: c.ID, Deleted: c.Deleted}
	if c.Deleted {
		return s
	}
	s.Slug, s.Name, s.Status, s.Version, s.VersionID = c.Slug, c.Name, c.Status, c.Version, c.VersionID
	s.Labels, s.Tags, s.Created, s.Updated, s.CreatedBy, s.UpdatedBy = c.Labels, c.Tags, c.Created, c.Updated, c.CreatedBy, c.UpdatedBy
	s.Body = maskWhole(c.Body)
	return s
}

// maskWhole masks a body without shortening it.
func maskWhole(body []byte) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil // cannot happen: stored forms are JSON
	}
	raw, err := json.Marshal(maskValue(v, false, 0))
	if err != nil {
		return nil
	}
	return raw
}

// stateMark is the action of a message that carries states and no entry.
const stateMark = "state"

// StageStates puts the states of all resources that a change leaves into the outbox, as part of
// the change; see resource.Resources.BeforeCommit.
func StageStates(tx *resource.Tx) error {
	var part []State
	size := 0
	send := func() error {
		if len(part) == 0 {
			return nil
		}
		e := Entry{Action: stateMark}
		e.complete(tx.Now(), tx.Scope().Org)
		packed, err := pack(part)
		if err != nil {
			return err
		}
		body, err := json.Marshal(&message{Entry: e, States: packed})
		if err != nil {
			return fmt.Errorf("audit: encode: %w", err)
		}
		tx.Outbox(Topic, body)
		part, size = nil, 0
		return nil
	}
	for _, c := range tx.Changed() {
		s := StateOf(&c)
		s.At = tx.Sequence()
		if len(s.Body) > maxState {
			if packed, err := pack([]State{s}); err != nil || len(packed) > maxMessage {
				s.Body, s.Cut = nil, true
			}
		}
		if size > 0 && size+len(s.Body) > maxMessage {
			if err := send(); err != nil {
				return err
			}
		}
		part, size = append(part, s), size+len(s.Body)
	}
	return send()
}

// writers are compressors, of which each has 0.8 MB, while most states have 1 KB.
var writers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}}

// pack compresses states with gzip.
func pack(states []State) ([]byte, error) {
	raw, err := json.Marshal(states)
	if err != nil {
		return nil, fmt.Errorf("audit: encode: %w", err)
	}
	out := bytes.NewBuffer(make([]byte, 0, len(raw)/2+64))
	w := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	w.Reset(out)
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// unpack reads what pack wrote; most bounds the size of its JSON.
func unpack(packed []byte) (states []State, err error) {
	const most = 64 << 20
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("audit: states: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(z, most))
	if err != nil {
		return nil, fmt.Errorf("audit: states: %w", err)
	}
	if err := json.Unmarshal(raw, &states); err != nil {
		return nil, fmt.Errorf("audit: states: %w", err)
	}
	return states, nil
}

// statePartition holds the states of a resource in the order of time. Ids that are not
// UUIDs, such as the id of settings, occur in several workspaces and kinds; their states
// share one partition.
func statePartition(org, id string) store.Partition {
	return store.Scope{Org: org}.Partition("STATE", id)
}

// stateRow is a state as stored. A state that is delivered twice gives the same row.
func stateRow(org string, s *State) (store.Row, error) {
	body, err := pack([]State{*s})
	if err != nil {
		return store.Row{}, err
	}
	return store.Row{Key: statePartition(org, s.ID).Key(fmt.Sprintf("%019d", s.At)), Item: store.Item{"state": body, "ws": s.Workspace, "kind": string(s.Kind)}}, nil
}

// lastMilli is the last millisecond that can be written in nanoseconds.
const lastMilli = 9_223_372_036_853

// maxStates bounds the rows that are looked at for one state.
const maxStates = 10_000

// At gives a resource as it was at a time. ok is false if the trail knows of none; a
// resource that was deleted by then gives a state that reports it. is chooses among resources
// with the same id, by kind and id of the workspace.
func (r *Reader) At(ctx context.Context, org, id string, at time.Time, is func(k resource.Kind, workspace string) bool) (State, bool, error) {
	// Callers specify times in milliseconds: the entire millisecond counts.
	until := min(max(at.UnixMilli(), 0), lastMilli)*1e6 + 999_999
	q := store.Query{
		Partition: statePartition(org, id), To: fmt.Sprintf("%019d", until), Reverse: true, Limit: readStates,
	}
	for read := 0; read < maxStates; read += readStates {
		page, err := r.table.Query(ctx, q)
		if err != nil {
			return State{}, false, fault.Unavailable(err)
		}
		for _, row := range page.Rows {
			if !is(resource.Kind(row.Item.String("kind")), row.Item.String("ws")) {
				continue
			}
			states, err := unpack(row.Item.Bytes("state"))
			if err != nil || len(states) != 1 {
				return State{}, false, fault.Internal(err)
			}
			return states[0], true, nil
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	return State{}, false, nil
}
