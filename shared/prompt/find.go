package prompt

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"time"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// View is a request's view of prompts and partials: that of its organization, which is at most
// resource.MaxStale older than the store, from the workspace of its caller.
type View struct {
	View  *resource.View
	Scope store.Scope // of the caller
	// User identifies the user, for experiments: the value of a key of the metadata, or for
	// "" the user of the request. The response is never empty.
	User func(key string) string
}

// Found is a version of a prompt that a request uses.
type Found struct {
	*Saved
	Scope      store.Scope // scope of the prompt: another workspace's if it is shared
	Experiment string      // id of the experiment that chose the version; "": none did
}

// head is the part of a record needed to find a version: its published content, and which
// versions exist.
type head[T any] struct {
	id        string
	archived  bool
	published int64
	newest    int64
	labels    map[string]int64
	running   string // id of the experiment; "": none
	content   T      // of the published version
}

// versioned decodes a record and its published content.
func versioned[T any](decode func(resource.Record) (T, error)) func(resource.Record) (*head[T], error) {
	return func(rec resource.Record) (*head[T], error) {
		content, err := decode(rec)
		if err != nil {
			return nil, err
		}
		return &head[T]{rec.ID, rec.Archived(), rec.Version, rec.Latest, maps.Clone(rec.Labels), rec.Fields[FieldExperiment], content}, nil
	}
}

// missing is the one response for prompts that do not exist, are archived, or belong to
// others.
func missing(ref string) error {
	return fault.Newf(fault.NotFound, "prompt", "The prompt %q or this version of it does not exist in this workspace", fault.Clip(ref, 300))
}

// Find gives the version that name@version means. Without a version that is the published
// one, or the one that the running experiment chooses. Otherwise it is @latest, a number,
// or a label of the caller's workspace or of one shared with it.
func (s View) Find(ctx context.Context, name string) (*Found, error) {
	found, _, err := s.find(ctx, name, true)
	return found, err
}

// Examined finds the version that name@version means, regardless of experiments, with the
// saved table of tests of its prompt.
func (s View) Examined(ctx context.Context, name string) (*Found, []Case, error) {
	found, h, err := s.find(ctx, name, false)
	if err != nil {
		return nil, nil, err
	}
	return found, h.content.Prompt.Tests, nil
}

func (s View) find(ctx context.Context, name string, trying bool) (*Found, *head[*Saved], error) {
	ref := ParseReference(name)
	sc, h, err := s.head(ctx, ref.Name)
	if err != nil {
		return nil, nil, err
	}
	if h == nil {
		return nil, nil, missing(name)
	}
	n, numbered := ref.Number(h.published, h.newest)
	tried := ""
	if trying && ref.Version == "" && h.running != "" {
		if n, tried, err = s.tried(ctx, sc, h); err != nil {
			return nil, nil, err
		}
	}
	if !numbered {
		if n, err = s.labeled(ctx, sc, h, ref.Version); err != nil {
			return nil, nil, err
		}
	}
	saved, err := s.version(ctx, sc, h, n)
	if err == nil && saved == nil {
		err = missing(name)
	}
	return &Found{saved, sc, tried}, h, err
}

// tried is the version that the running experiment chooses for the caller's user, with the
// id of the experiment. If that version cannot be used, it is the published one.
func (s View) tried(ctx context.Context, sc store.Scope, h *head[*Saved]) (n int64, id string, err error) {
	t, ok, err := resource.Load(ctx, s.View, sc, KindExperiment.Of(h.id), h.running, decodeTrial)
	if err != nil || !ok || t.status != Running {
		return h.published, "", err
	}
	n = t.Pick(t.id, s.User(t.StickyBy))
	if v, err := s.version(ctx, sc, h, n); err != nil || v == nil {
		return h.published, "", err // it was archived meanwhile
	}
	return n, t.id, nil
}

// version gives version n of a prompt; nil: there is none that can be used.
func (s View) version(ctx context.Context, sc store.Scope, h *head[*Saved], n int64) (*Saved, error) {
	if n == h.published {
		return h.content, nil
	}
	saved, ok, err := resource.LoadVersion(ctx, s.View, sc, KindPrompt, h.id, n, DecodePrompt)
	if err != nil || !ok || saved.Status == resource.StatusArchived {
		return nil, err
	}
	return saved, nil
}

// head finds a prompt by id or slug, and its scope; nil: there is none.
func (s View) head(ctx context.Context, name string) (store.Scope, *head[*Saved], error) {
	h, ok, err := resource.Load(ctx, s.View, s.Scope, KindPrompt, name, versioned(DecodePrompt))
	if err != nil {
		return s.Scope, nil, err
	}
	if ok {
		if h.archived {
			h = nil
		}
		return s.Scope, h, nil
	}
	share, ok, err := resource.Load(ctx, s.View, s.Scope.Organisation(), KindShare, name, decodeShare)
	if err != nil || !ok || !share.open.OpenTo(s.Scope.Workspace) {
		return s.Scope, nil, err
	}
	owner := store.Scope{Org: s.Scope.Org, Workspace: share.open.Owner}
	h, ok, err = resource.Load(ctx, s.View, owner, KindPrompt, share.id, versioned(DecodePrompt))
	if err != nil || !ok || h.archived {
		return owner, nil, err
	}
	return owner, h, nil
}

type sharedAs struct {
	id   string // of the prompt
	open *Share
}

func decodeShare(rec resource.Record) (*sharedAs, error) {
	s := new(Share)
	if err := json.Unmarshal(rec.Body, s); err != nil {
		return nil, fmt.Errorf("prompt: stored share %s: %w", rec.ID, err)
	}
	return &sharedAs{rec.ID, s}, nil
}

// labeled is the version that carries a label, by the label's name or id; 0: none does.
func (s View) labeled(ctx context.Context, sc store.Scope, h *head[*Saved], label string) (int64, error) {
	if len(h.labels) == 0 {
		return 0, nil
	}
	for _, of := range []store.Scope{sc, sc.Organisation()} {
		id, ok, err := resource.Load(ctx, s.View, of, KindLabel, label, func(rec resource.Record) (string, error) { return rec.ID, nil })
		if err != nil {
			return 0, err
		}
		if ok {
			return h.labels[id], nil
		}
	}
	return 0, nil
}

// Partials gives the saved partials of a workspace.
func (s View) Partials(ctx context.Context, sc store.Scope) Partials {
	return func(ref Reference) (*Template, error) {
		h, ok, err := resource.Load(ctx, s.View, sc, KindPartial, ref.Name, versioned(DecodePartial))
		if err != nil {
			return nil, unavailable(err)
		}
		n, named := ref.Number(0, 0)
		if ok {
			n, named = ref.Number(h.published, h.newest)
		}
		if !ok || h.archived || !named {
			return nil, noPartial(ref)
		}
		if n == h.published {
			return h.content, nil
		}
		t, ok, err := resource.LoadVersion(ctx, s.View, sc, KindPartial, h.id, n, DecodePartial)
		switch {
		case err != nil:
			return nil, unavailable(err)
		case !ok:
			return nil, noPartial(ref)
		}
		return t, nil
	}
}

func noPartial(ref Reference) error {
	return fault.Newf(fault.InvalidRequest, "prompt", "The template includes the partial %q, which does not exist in the workspace, or not in that version", fault.Clip(ref.String(), 300))
}

// unavailable makes sure that a failure of the store is not reported as the caller's
// mistake.
func unavailable(err error) error {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f
	}
	return fault.Unavailable(err)
}

// Rendered is a prompt filled with a request's variables.
type Rendered struct {
	*Found
	RequestedName string // the requested name
	Body          []byte // for the provider
}

// Render finds a prompt and makes the body of it.
func (s View) Render(ctx context.Context, name string, q *Request) (*Rendered, error) {
	found, err := s.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	body, err := found.Body(q, s.Partials(ctx, found.Scope))
	if err != nil {
		return nil, err
	}
	return &Rendered{found, name, body}, nil
}

// KindExperiment is the kind of experiments: records below their prompt.
const KindExperiment resource.Kind = "EXPERIMENT"

// FieldExperiment is a field of a prompt: the id of the experiment that is running. There
// is at most one. Requests read it with the prompt, so that prompts without an experiment
// cost nothing more.
const FieldExperiment = "experiment"

// States of an experiment: the status of its record. It is started once and stopped once,
// so that its results are about one set of users.
const (
	Draft   = "draft"
	Running = "running"
	Stopped = "stopped"
)

// Bounds of experiments.
const (
	minVariants = 2
	maxWeight   = 1_000_000
)

// Variant is a version that takes part in an experiment.
type Variant struct {
	Version int64 `json:"version"`
	Weight  int64 `json:"weight"` // its share is this divided by the sum; 0: none
}

// Experiment is the stored form: versions of a prompt that share its requests by weight.
// Requests that do not name a version of the prompt take part.
type Experiment struct {
	Description string    `json:"description,omitempty" max:"1024"`
	Variants    []Variant `json:"variants,omitempty" min:"2" max:"10"`
	// StickyBy is the metadata key with the value that identifies a user, who always gets the
	// same version; empty: _user, or the field user of the body.
	StickyBy string     `json:"sticky_by,omitempty" max:"128"`
	Started  *time.Time `json:"started_at,omitempty"`
	Ended    *time.Time `json:"stopped_at,omitempty"`
	Promoted int64      `json:"promoted_version,omitempty"`
}

// Validate returns all errors of the experiment's fields; the caller must check which versions
// exist.
func (e *Experiment) Validate() []fault.Detail {
	bad := bound.Check(e)
	seen, sum := map[int64]bool{}, int64(0)
	for i, v := range e.Variants {
		at := fmt.Sprintf("variants[%d].", i)
		if v.Version < 1 {
			bad = append(bad, fault.Detail{Field: at + "version", Message: "must be the number of a version"})
		} else if seen[v.Version] {
			bad = append(bad, fault.Detail{Field: at + "version", Message: "is already in the list"})
		}
		seen[v.Version] = true
		if v.Weight < 0 || v.Weight > maxWeight {
			bad = append(bad, fault.Detail{Field: at + "weight", Message: fmt.Sprintf("must be between 0 and %d", maxWeight)})
		}
		sum += max(v.Weight, 0)
	}
	if len(e.Variants) >= minVariants && sum == 0 {
		bad = append(bad, fault.Detail{Field: "variants", Message: "must have a weight above 0"})
	}
	return bad
}

// Pick returns the version of a user, by the id of the experiment. It uses weighted rendezvous
// hashing: each version draws a number for the user, and the largest wins. So a user gets the
// same version as long as the weights do not change. If one weight grows, users only move to
// that version, and none between the others.
func (e *Experiment) Pick(id, user string) (version int64) {
	best := math.Inf(-1)
	for _, v := range e.Variants {
		if v.Weight <= 0 {
			continue
		}
		if score := float64(v.Weight) / -math.Log(drawn(id, user, v.Version)); score > best {
			best, version = score, v.Version
		}
	}
	return version
}

// drawn is a number between 0 and 1, both excluded. It is always the same for the same
// input.
func drawn(id, user string, version int64) float64 {
	h := fnv.New64a()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(version))
	_, _ = h.Write([]byte(id)) // never fails
	_, _ = h.Write(n[:])
	_, _ = h.Write([]byte(user))
	return (float64(mixed(h.Sum64())>>11) + 0.5) / (1 << 53)
}

// mixed spreads the bits of a hash, because its high bits hardly depend on a short text. These
// are the last steps of MurmurHash3.
func mixed(n uint64) uint64 {
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	n *= 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// trial is a stored experiment in the form that requests use.
type trial struct {
	id, status string
	*Experiment
}

func decodeTrial(rec resource.Record) (*trial, error) {
	e := new(Experiment)
	if err := json.Unmarshal(rec.Body, e); err != nil {
		return nil, fmt.Errorf("prompt: stored experiment %s: %w", rec.ID, err)
	}
	return &trial{rec.ID, rec.Status, e}, nil
}
