// Package approval records the approval requests for tool calls, so that an approval is valid
// for exactly one call with exactly those arguments.
//
// A model provider can write any item into its responses, and clients send items back as they
// received them. Therefore an approval request is only identified by its row: its id has a
// random part that no provider gets, and the row holds the hash of the call.
package approval

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// Lifetime is how long a request can be approved. Its row is stored twice as long, to
// distinguish a used one from an unknown one.
const Lifetime = 7 * 24 * time.Hour

// Call is a tool call that waits for approval.
type Call struct {
	ID        string // of the model
	Server    string // label
	Tool      string
	Arguments string // JSON
}

func (c *Call) hash() string {
	h := sha256.New()
	for _, s := range [...]string{c.ID, c.Server, c.Tool, c.Arguments} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Prefix starts the ids of requests.
const Prefix = "mcpr_"

// ModelID returns the model's id of the call that a request is about. It never contains the
// random part of the request's id.
func ModelID(request string) string {
	rest := strings.TrimPrefix(request, Prefix)
	if secret, id, ok := strings.Cut(rest, "_"); ok && len(secret) == len(rand.Text()) {
		return id
	}
	return rest
}

// Conceal returns a body for a model provider without the random parts of the requests' ids, so
// that no provider can write an approval for one of them. Clients send the ids along with the
// history of a conversation, on routes that run no tools as well. A body without them is
// returned unchanged.
func Conceal(body []byte) []byte {
	var out []byte
	rest := body
	for {
		at := bytes.Index(rest, []byte(Prefix))
		if at < 0 {
			break
		}
		at += len(Prefix)
		out, rest = append(out, rest[:at]...), rest[at:]
		for n := secretLength(rest); n > 0; n = secretLength(rest) { // removing one may complete another
			rest = rest[n:]
		}
	}
	if out == nil {
		return body
	}
	return append(out, rest...)
}

// secretLength returns the length of the random part of an id and of the character that follows
// it, if the text after a prefix starts with one; zero if it does not.
func secretLength(text []byte) int {
	secret, _, found := bytes.Cut(text[:min(len(text), len(rand.Text())+1)], []byte("_"))
	if !found || len(secret) != len(rand.Text()) || bytes.ContainsFunc(secret, notBase32) {
		return 0
	}
	return len(secret) + 1
}

// notBase32 reports whether a character does not occur in rand.Text.
func notBase32(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }

// States of a request.
const (
	pending  = "pending"
	approved = "approved"
	denied   = "denied"
)

// Requests are the requests of one workspace. It is safe for concurrent use.
type Requests struct {
	Table store.Table
	Now   func() time.Time
	Scope store.Scope
}

func (r *Requests) key(id string) store.Key {
	sum := sha256.Sum256([]byte(id)) // ids of models may have any length
	return r.Scope.Partition("APPROVAL").Key(hex.EncodeToString(sum[:]))
}

// Create records a request and returns its id.
func (r *Requests) Create(ctx context.Context, c *Call) (id string, err error) {
	id = Prefix + rand.Text() + "_" + c.ID
	now := r.Now()
	row := store.Row{
		Key:     r.key(id),
		Item:    store.Item{"call": c.hash(), "state": pending, "until": now.Add(Lifetime).Unix()},
		Expires: now.Add(2 * Lifetime),
	}
	if err := r.Table.Put(ctx, row, store.IfAbsent()); err != nil {
		return "", fault.Unavailable(err)
	}
	return id, nil
}

// Approve uses a request up. It returns a *fault.Fault with the code of invalid requests if
// there is no such request for the call, if it has expired, or if it was approved or denied
// before. field is the client's field with the id.
func (r *Requests) Approve(ctx context.Context, field, id string, c *Call) error {
	unknown := fault.Invalid(field, "must be the id of an mcp_approval_request of this workspace, sent back unchanged within %d days", Lifetime/(24*time.Hour))
	item, ok, err := r.Table.Get(ctx, r.key(id), true)
	switch {
	case err != nil:
		return fault.Unavailable(err)
	case !ok || item.String("call") != c.hash() || r.Now().Unix() > item.Int("until"):
		return unknown
	}
	return r.end(ctx, field, id, approved)
}

// Deny records that a request was denied, so that it can no longer be approved. A request that
// is unknown or already denied is not an error.
func (r *Requests) Deny(ctx context.Context, field, id string, c *Call) error {
	item, ok, err := r.Table.Get(ctx, r.key(id), true)
	switch {
	case err != nil:
		return fault.Unavailable(err)
	case !ok || item.String("call") != c.hash() || item.String("state") != pending:
		return nil // an approved call was made
	}
	if err = r.end(ctx, field, id, denied); err != nil && fault.From(err).Status() < 500 {
		return nil // by a concurrent request
	}
	return err
}

// end moves a pending request to its final state.
func (r *Requests) end(ctx context.Context, field, id, state string) error {
	_, _, err := r.Table.Update(ctx, store.Update{
		Key: r.key(id), Set: []store.Assign{{Path: store.At("state"), Value: state}, {Path: store.At("by"), Value: rand.Text()}},
		Expires: r.Now().Add(2 * Lifetime),
		If:      []store.Cond{store.IfEqual(store.At("state"), pending)},
	})
	if _, failed := store.AsCondition(err); failed {
		return fault.Invalid(field, "names a request that was already approved or denied; an approval is valid for one call")
	}
	if err != nil {
		return fault.Unavailable(err)
	}
	return nil
}
