package resource

import (
	"context"
	"strings"

	"gateway/shared/store"
)

// Rehearsal collects what changes would do. See WithRehearsal.
type Rehearsal struct {
	Deleted []Ref // deleted or archived
	Updated []Ref
}

type rehearsalKey struct{}

// WithRehearsal returns a context in which changes are staged and never committed: what they
// would do is added to h, and the closure of each runs once. It is not safe for concurrent
// changes.
func WithRehearsal(ctx context.Context, h *Rehearsal) context.Context {
	return context.WithValue(ctx, rehearsalKey{}, h)
}

// Rehearses reports whether changes with the context are not committed.
func Rehearses(ctx context.Context) bool { return rehearsalOf(ctx) != nil }

func rehearsalOf(ctx context.Context) *Rehearsal {
	h, _ := ctx.Value(rehearsalKey{}).(*Rehearsal)
	return h
}

// rehearse runs the closure of a change and collects what it staged.
func (r *Resources) rehearse(ctx context.Context, sc store.Scope, f func(*Tx) error, h *Rehearsal) error {
	t := r.begin(ctx, sc)
	if err := f(t); err != nil {
		return err
	}
	h.Deleted = append(h.Deleted, t.deleted...)
	for _, rec := range t.Changed() {
		switch {
		case rec.Deleted:
		case rec.Archived():
			h.Deleted = append(h.Deleted, rec.Ref())
		default:
			h.Updated = append(h.Updated, rec.Ref())
		}
	}
	return nil
}

// Type returns the name of the referenced record's kind, such as mcp_server.
func (r Ref) Type() string { return strings.ReplaceAll(word(r.Kind), " ", "_") }

// UsedError is the cause of the fault of InUse.
type UsedError struct{ Users []Ref }

func (e *UsedError) Error() string { return "resource: in use" }
