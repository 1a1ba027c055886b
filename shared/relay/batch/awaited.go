package batch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"gateway/shared/queue"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Awaited is a background response or interaction that is charged even if its client never reads
// it. It is stored only in messages, sealed, because its headers may hold a credential of the
// client.
type Awaited struct {
	ID      string      `json:"id"`             // at the provider
	Path    string      `json:"path,omitempty"` // path of the reads, below the base; empty: that of a response
	Place   string      `json:"place"`
	Org     bool        `json:"org,omitempty"` // Place belongs to the organization, not to the workspace
	Key     string      `json:"key"`           // hash of the API key that created it
	Maker   Maker       `json:"maker"`
	Headers http.Header `json:"headers"` // headers of the reads, which select the provider
	Made    int64       `json:"made"`    // Unix seconds
	Looks   int         `json:"looks,omitempty"`
	Unknown int         `json:"unknown,omitempty"` // how often the provider reported it as missing
}

// ReadAt is the path of the reads, below the base.
func (a *Awaited) ReadAt() string { return cmp.Or(a.Path, "/responses/"+url.PathEscape(a.ID)) }

// Limits for awaiting a response.
const (
	// AwaitedFor is how long after its creation a response is polled.
	AwaitedFor = 24 * time.Hour
	// MaxUnknown is how often a provider may report a response as missing. It is more than once,
	// because the provider's replicas may lag.
	MaxUnknown = 3

	firstLook = time.Minute
)

// until returns the wait before the next poll of a response, which grows with each.
func (s *Batches) until(a *Awaited) time.Duration {
	first := s.Look
	if first <= 0 {
		first = firstLook
	}
	d := first << min(a.Looks, 10)
	return min(d, queue.MaxDelay)
}

// Await returns the message for the next poll of a response.
func (s *Batches) Await(ctx context.Context, sc store.Scope, a *Awaited) (out queue.Outgoing, err error) {
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

// OpenAwaited reads the response to poll from a message.
func (s *Batches) OpenAwaited(ctx context.Context, step Step) (*Awaited, error) {
	plain, err := s.Sealer.Open(ctx, awaitedBinding(step.Scope(), step.Batch), step.Awaited)
	if err != nil {
		return nil, fmt.Errorf("managed: awaited response: %w", err)
	}
	a := new(Awaited)
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
