package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Graph determines which texts include which partials in a workspace.
type Graph struct {
	Resources *resource.Resources
	Scope     store.Scope
	// Get reads a record as the present change leaves it; nil: as it is stored.
	Get func(sc store.Scope, k resource.Kind, idOrSlug string) (resource.Record, bool, error)
}

// maxCached bounds how many partials a save protects from deletion meanwhile.
const maxCached = 40

// Check rejects a text that includes something that does not exist, or itself. start is the
// text with its id (none for a prompt) and the number that it will have. It returns the
// records that the text itself names, at most maxHeld of them.
func (g Graph) Check(ctx context.Context, start Node) ([]resource.Record, []fault.Detail, error) {
	var named []resource.Record
	var failed error
	own := map[Reference]bool{}
	for _, ref := range start.Partials {
		own[ref] = true
	}
	ref, err := Closure(start, func(ref Reference) (Node, error) {
		rec, n, err := g.find(ctx, ref, start)
		if err != nil {
			if !errors.Is(err, ErrNoPartial) {
				failed = err
			}
			return Node{}, err
		}
		if own[ref] && rec.ID != start.ID && len(named) < maxCached && !slices.ContainsFunc(named, func(r resource.Record) bool { return r.ID == rec.ID }) {
			named = append(named, *rec)
		}
		return n, nil
	})
	switch {
	case failed != nil:
		return nil, nil, failed
	case errors.Is(err, ErrNoPartial):
		return nil, []fault.Detail{{Field: "string", Message: fmt.Sprintf("includes the partial %q, which does not exist in the workspace or includes one that does not exist", clip(ref.String()))}}, nil
	case err != nil:
		return nil, []fault.Detail{{Field: "string", Message: fmt.Sprintf("includes the partial %q: %s", clip(ref.String()), err)}}, nil
	}
	return named, nil, nil
}

// find gives the version that a reference names. If it names the text that is about to be
// saved, that text is used.
func (g Graph) find(ctx context.Context, ref Reference, start Node) (*resource.Record, Node, error) {
	get := g.Get
	if get == nil {
		get = func(sc store.Scope, k resource.Kind, name string) (resource.Record, bool, error) {
			return g.Resources.Get(ctx, sc, k, name)
		}
	}
	rec, ok, err := get(g.Scope, KindPartial, ref.Name)
	if err != nil {
		return nil, Node{}, err
	}
	n, named := ref.Number(rec.Version, rec.Latest)
	if !ok || rec.Archived() || !named {
		return nil, Node{}, ErrNoPartial
	}
	if rec.ID == start.ID && (ref.Version == "" || ref.Version == Latest) {
		return &rec, Node{rec.ID, start.Version, start.Partials}, nil
	}
	body := rec.Body
	if n != rec.Version {
		v, ok, err := g.Resources.Version(ctx, g.Scope, KindPartial, rec.ID, n)
		if err != nil {
			return nil, Node{}, err
		}
		if !ok {
			return nil, Node{}, ErrNoPartial
		}
		body = v.Body
	}
	var p Partial
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, Node{}, fmt.Errorf("prompt: stored partial %s: %w", rec.ID, err)
	}
	return &rec, Node{rec.ID, n, p.Partials()}, nil
}

// Users are the prompts and partials that include a partial by a version that can be named
// without its number: the published one, the newest, one with a label.
func (g Graph) Users(ctx context.Context, of *resource.Record) ([]resource.Ref, error) {
	var out []resource.Ref
	for _, k := range []resource.Kind{KindPrompt, KindPartial} {
		rows, err := g.Resources.List(ctx, g.Scope, k)
		if err != nil {
			return nil, err
		}
		var ids []string
		for i := range rows {
			if rows[i].Fields[FieldPartials] != "" && rows[i].ID != of.ID {
				ids = append(ids, rows[i].ID)
			}
		}
		recs, err := g.Resources.GetMany(ctx, g.Scope, k, ids)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			used, err := g.uses(ctx, &recs[i], of)
			if err != nil {
				return nil, err
			}
			if used {
				out = append(out, recs[i].Ref())
			}
		}
	}
	return out, nil
}

func (g Graph) uses(ctx context.Context, rec, of *resource.Record) (bool, error) {
	numbers := []int64{rec.Version, rec.Latest}
	for _, n := range rec.Labels {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		body := rec.Body
		if n != rec.Version {
			v, ok, err := g.Resources.Version(ctx, rec.Scope, rec.Kind, rec.ID, n)
			if err != nil {
				return false, err
			}
			if !ok {
				continue
			}
			body = v.Body
		}
		if slices.ContainsFunc(partialsOf(rec.Kind, body), func(ref Reference) bool { return ref.Name == of.ID || ref.Name == of.Slug }) {
			return true, nil
		}
	}
	return false, nil
}

func partialsOf(k resource.Kind, body []byte) []Reference {
	if k == KindPartial {
		var p Partial
		if json.Unmarshal(body, &p) != nil {
			return nil
		}
		return p.Partials()
	}
	var p Prompt
	if json.Unmarshal(body, &p) != nil {
		return nil
	}
	return p.Partials()
}
