package batch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/queue"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// responsePart is the maximum size of a response in one item, before it is sealed.
const responsePart = 300 << 10

func hasResponses(sc store.Scope, batch string) store.Partition { return sc.Partition("RUNROW", batch) }

func responseKey(sc store.Scope, batch string, line int, more ...string) store.Key {
	return hasResponses(sc, batch).Key(append([]string{fmt.Sprintf("%09d", line)}, more...)...)
}

// Accept stores the output row of a line, unless the line has one. It reports whether the stored
// response is a success; another worker may have stored it.
func (s *Batches) Accept(ctx context.Context, sc store.Scope, batch string, line int, good bool, row []byte) (isGood bool, err error) {
	expires := s.Now().Add(responseLifetime)
	var token string
	for n := 1; len(row) > n*responsePart; n++ {
		if token == "" {
			var b [8]byte
			_, _ = rand.Read(b[:])
			token = hex.EncodeToString(b[:])
		}
		part := row[n*responsePart : min((n+1)*responsePart, len(row))]
		if err := s.putResponse(ctx, sc, responseKey(sc, batch, line, token, fmt.Sprintf("%04d", n)), part, store.Item{}, expires.Unix()); err != nil {
			return false, err
		}
	}
	err = s.putResponse(ctx, sc, responseKey(sc, batch, line), row[:min(responsePart, len(row))], store.Item{"good": good, "token": token}, expires.Unix(), store.IfAbsent())
	if was, there := store.AsCondition(err); there {
		isGood, _ = was.Current["good"].(bool)
		return isGood, nil
	}
	return good, err
}

func (s *Batches) putResponse(ctx context.Context, sc store.Scope, k store.Key, part []byte, item store.Item, expires int64, conds ...store.Cond) error {
	sealed, err := s.Sealer.Seal(ctx, binding(sc, k), part)
	if err != nil {
		return err
	}
	item["sealed"] = sealed
	return s.table().Put(ctx, store.Row{Key: k, Item: item, Expires: unix(expires)}, conds...)
}

// Accepted returns the lines that have a response, and whether it is a success.
func (s *Batches) Accepted(ctx context.Context, sc store.Scope, batch string, lines []int) (map[int]bool, error) {
	keys := make([]store.Key, len(lines))
	for i, n := range lines {
		keys[i] = responseKey(sc, batch, n)
	}
	items, err := s.table().GetMany(ctx, keys)
	if err != nil {
		return nil, err
	}
	done := make(map[int]bool, len(items))
	for i, k := range keys {
		if item, ok := items[k]; ok {
			done[lines[i]], _ = item["good"].(bool)
		}
	}
	return done, nil
}

// Rows reads the accepted rows that succeeded, or those that failed, in the order of their
// lines.
func (s *Batches) Rows(ctx context.Context, sc store.Scope, batch string, good bool) io.Reader {
	return &rowReader{ctx: ctx, s: s, sc: sc, good: good, q: store.Query{Partition: hasResponses(sc, batch)}}
}

type rowReader struct {
	ctx   context.Context
	s     *Batches
	sc    store.Scope
	good  bool
	q     store.Query
	page  []store.Row
	over  bool
	parts string // key prefix of the further parts of the current row
	out   []byte
}

// Read implements io.Reader.
func (r *rowReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if len(r.page) == 0 {
			if r.over {
				return 0, io.EOF
			}
			page, err := r.s.table().Query(r.ctx, r.q)
			if err != nil {
				return 0, err
			}
			r.page, r.q.After = page.Rows, page.Next
			r.over = page.Next == ""
			continue
		}
		row := r.page[0]
		r.page = r.page[1:]
		sk := row.Key.SK()
		if !strings.Contains(sk, "#") {
			r.parts = ""
			if is, _ := row.Item["good"].(bool); is != r.good {
				continue
			}
			if token := row.Item.String("token"); token != "" {
				r.parts = sk + "#" + token + "#"
			}
		} else if r.parts == "" || !strings.HasPrefix(sk, r.parts) {
			continue // of a response that was not accepted
		}
		var err error
		if r.out, err = r.s.Sealer.Open(r.ctx, binding(r.sc, row.Key), row.Item.Bytes("sealed")); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// PolledResponse is a background response or interaction that is charged even if its client never reads
// it. It is stored only in messages, sealed, because its headers may hold a credential of the
// client.
type PolledResponse struct {
	ID      string      `json:"id"`             // at the provider
	Path    string      `json:"path,omitempty"` // path of the reads, below the base; empty: that of a response
	Place   string      `json:"place"`
	Org     bool        `json:"org,omitempty"` // Place belongs to the organization, not to the workspace
	Key     string      `json:"key"`           // hash of the API key that created it
	Creator Creator     `json:"maker"`
	Headers http.Header `json:"headers"` // headers of the reads, which select the provider
	Created int64       `json:"made"`    // Unix seconds
	Polls   int         `json:"looks,omitempty"`
	Unknown int         `json:"unknown,omitempty"` // how often the provider reported it as missing
}

// ReadAt is the path of the reads, below the base.
func (a *PolledResponse) ReadAt() string { return cmp.Or(a.Path, "/responses/"+url.PathEscape(a.ID)) }

// Limits for awaiting a response.
const (
	// MaxPollAge is how long after its creation a response is polled.
	MaxPollAge = 24 * time.Hour
	// MaxUnknown is how often a provider may report a response as missing. It is more than once,
	// because the provider's replicas may lag.
	MaxUnknown = 3

	firstLook = time.Minute
)

// CountPoll counts a poll of a response that has not ended. It returns false once the provider has
// repeatedly reported it as missing.
func (a *PolledResponse) CountPoll(missing bool) bool {
	a.Polls++
	if missing {
		a.Unknown++
	}
	return a.Unknown < MaxUnknown
}

// until returns the wait before the next poll of a response, which grows with each.
func (s *Batches) until(a *PolledResponse) time.Duration {
	first := s.FirstPoll
	if first <= 0 {
		first = firstLook
	}
	d := first << min(a.Polls, 10)
	return min(d, queue.MaxDelay)
}

// SchedulePoll returns the message for the next poll of a response.
func (s *Batches) SchedulePoll(ctx context.Context, sc store.Scope, a *PolledResponse) (out queue.Outgoing, err error) {
	plain, err := json.Marshal(a)
	if err != nil {
		return out, err
	}
	sealed, err := s.Sealer.Seal(ctx, awaitedBinding(sc, a.ID), plain)
	if err != nil {
		return out, err
	}
	out = message(Step{Org: sc.Org, Workspace: sc.Workspace, Batch: a.ID, Awaited: sealed}, s.until(a))
	return out, out.Check()
}

// OpenPolled reads the response to poll from a message.
func (s *Batches) OpenPolled(ctx context.Context, step Step) (*PolledResponse, error) {
	plain, err := s.Sealer.Open(ctx, awaitedBinding(step.Scope(), step.Batch), step.Awaited)
	if err != nil {
		return nil, fmt.Errorf("managed: awaited response: %w", err)
	}
	a := new(PolledResponse)
	if err := json.Unmarshal(plain, a); err != nil {
		return nil, fmt.Errorf("managed: awaited response: %w", err)
	}
	return a, nil
}

// awaitedBinding binds the sealed message to its workspace, so that no other can read it.
func awaitedBinding(sc store.Scope, id string) seal.Binding {
	k := sc.Partition("AWAITED").Key(id)
	return seal.Binding{Org: sc.Org, Table: string(store.Usage), PK: k.PK(), SK: k.SK()}
}

// Step is the body of a message that requests one step of a batch.
type Step struct {
	Org       string `json:"org"`
	Workspace string `json:"workspace"`
	Batch     string `json:"batch"`
	Step      int64  `json:"step"`
	Sweep     bool   `json:"sweep,omitempty"`   // instead: look for stalled batches
	Awaited   []byte `json:"awaited,omitempty"` // instead: poll the response named by Batch; see PolledResponse
}

// Scope is the workspace of the batch.
func (s Step) Scope() store.Scope { return store.Scope{Org: s.Org, Workspace: s.Workspace} }

// Message returns the message for a step, after a delay.
func Message(sc store.Scope, batch string, step int64, delay time.Duration) queue.Outgoing {
	return message(Step{Org: sc.Org, Workspace: sc.Workspace, Batch: batch, Step: step}, delay)
}

func message(s Step, delay time.Duration) queue.Outgoing {
	body, _ := json.Marshal(s) // texts, bytes and a number
	out := queue.Outgoing{Group: s.Org, Body: body, Delay: min(max(delay, 0), queue.MaxDelay)}
	if out.Check() != nil {
		out.Group = "" // not a valid group id
	}
	return out
}

// SweepMessage returns the message that starts a search for stalled batches.
func SweepMessage() queue.Outgoing { return queue.Outgoing{Body: []byte(`{"sweep":true}`)} }

// ReadMessage reads the body of a message.
func ReadMessage(body []byte) (s Step, err error) {
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("managed: message: %w", err)
	}
	if !s.Sweep && (s.Org == "" || s.Workspace == "" || s.Batch == "") {
		return s, fmt.Errorf("managed: message without a batch")
	}
	return s, nil
}

// Headers returns the headers that a batch's options set.
func Headers(options map[string]string) http.Header {
	h := make(http.Header, len(options)+6)
	for name, v := range options {
		if v != "" {
			h.Set(name, v)
		}
	}
	return h
}
