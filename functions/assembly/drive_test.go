package assembly_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gateway/shared/testkit/admintest/drive"
)

// TestADeclaringClientDrivesEveryResource does what tools do that keep resources as
// they are declared: create, read, update, import, plan without a difference, and
// destroy, for each resource of the document, by the document alone.
func TestADeclaringClientDrivesEveryResource(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.user(rootKey, "admin@example.com", "admin", "", "")
	in.user(rootKey, "member@example.com", "member", "first-space", "member")
	w := drive.NewResources(in.doc, in.as(rootKey))
	driven := map[string]bool{}
	for _, create := range in.doc.Creates() {
		for _, place := range []drive.Place{drive.Workspace, drive.Organisation} {
			for _, enums := range w.Variants(create) {
				thing, err := w.Create(create, place, enums)
				var refused *drive.RejectedError
				if errors.As(err, &refused) && refused.Status == 400 && notThere(refused.Fields(), enums) {
					continue // no such kind, or not in this place
				}
				if err != nil {
					t.Errorf("create %s in workspace %v, %v: %v", create.Path, place, enums, err)
					continue
				}
				if place == drive.Organisation && driven[create.Path] && thing.Sent["workspace_id"] == nil && create.Body["properties"].(map[string]any)["workspace_id"] == nil {
					break // the same as before
				}
				driven[create.Path] = true
				driveLifecycle(t, w, thing, fmt.Sprint(create.Path, " in workspace ", place, " ", enums))
			}
		}
	}
	for _, create := range in.doc.Creates() {
		if !driven[create.Path] {
			t.Errorf("%s was not driven", create.Path)
		}
	}
	if len(driven) < 12 {
		t.Errorf("only %d resources were driven: %v", len(driven), slices.Sorted(maps.Keys(driven)))
	}
}

// notThere reports whether an error concerns only the type or the place.
func notThere(fields map[string]string, enums map[string]string) bool {
	for f := range fields {
		if f != "workspace_id" && enums[f] == "" {
			return false
		}
	}
	return len(fields) > 0
}

// driveLifecycle drives a resource through its lifecycle.
func driveLifecycle(t *testing.T, w *drive.Resources, thing *drive.Resource, what string) {
	t.Helper()
	state := plan(t, w, thing, what+" after its creation")
	if state == nil {
		return
	}
	filters(t, w, thing, state, what)
	if w.Doc.Linked(thing.Create, "update") != nil {
		changes(t, w, thing, state, what)
	}
	// An import knows the names in the path alone; what it reads has no difference.
	imported := &drive.Resource{Create: thing.Create, Place: thing.Place, Variables: maps.Clone(thing.Variables), Sent: thing.Sent}
	plan(t, w, imported, what+" after its import")
	if w.Doc.Linked(thing.Create, "delete") == nil {
		return
	}
	if err := w.Delete(thing); err != nil {
		t.Errorf("%s: destroy: %v", what, err)
		return
	}
	_, err := w.Get(thing)
	var refused *drive.RejectedError
	if err == nil {
		if got, _ := w.Get(thing); got["status"] != "archived" && got["status"] != "cancelled" {
			t.Errorf("%s is still there after it was destroyed: %v", what, got)
		}
	} else if !errors.As(err, &refused) || refused.Status != 403 && refused.Status != 404 {
		t.Errorf("%s after it was destroyed: %v", what, err)
	}
}

// plan reads a resource and returns its differences from the declared state.
func plan(t *testing.T, w *drive.Resources, thing *drive.Resource, what string) map[string]any {
	t.Helper()
	got, err := w.Get(thing)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return nil
	}
	of := thing.Create.Body
	sent := thing.Sent
	if users, ok := sent["users"].([]any); ok && len(sent) == 1 { // made in bulk: one entry is the thing
		sent = maps.Clone(users[0].(map[string]any))
		of = of["properties"].(map[string]any)["users"].(map[string]any)["items"].(map[string]any)
	}
	for _, d := range drive.Differences(of, sent, got, w.NamesOf) {
		t.Errorf("%s: %s", what, d)
	}
	return got
}

// filters lists with each parameter that has the name of a member of the thing: with the
// member's value the list has the thing, with another value of an enum it does not.
func filters(t *testing.T, w *drive.Resources, thing *drive.Resource, state map[string]any, what string) {
	t.Helper()
	op := w.Doc.At("GET", drive.Collection(w.Doc.Linked(thing.Create, "read").Path))
	if op == nil {
		return
	}
	listed := func(name, value string) bool {
		known := maps.Clone(thing.Variables)
		for _, size := range []string{"page_size", "pageSize"} {
			known[size] = "100"
		}
		known[name] = value
		path, err := w.Path(op, thing.Place, known)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		status, answer := w.Send("GET", path, nil)
		if status != 200 {
			t.Errorf("%s: %s: %d %s", what, path, status, answer)
		}
		return slices.ContainsFunc(drive.Entries(answer), func(e map[string]any) bool {
			id, _ := e["id"].(string)
			slug, _ := e["slug"].(string)
			return slices.Contains(thing.Names, id) || slices.Contains(thing.Names, slug)
		})
	}
	for _, p := range op.Query {
		value, is := state[p.Name].(string)
		if !is || value == "" || p.Name == "workspace_id" {
			continue
		}
		if !listed(p.Name, value) {
			t.Errorf("%s: the list with %s=%s does not have it", what, p.Name, value)
		}
		enum, _ := p.Schema["enum"].([]any)
		for _, other := range enum {
			if other != value && other != "all" && listed(p.Name, other.(string)) {
				t.Errorf("%s: the list with %s=%s has it, of which %s is %s", what, p.Name, other, p.Name, value)
			}
		}
	}
}

// declare notes a new value of a member that was declared.
func declare(sent map[string]any, name string, v any) {
	if users, ok := sent["users"].([]any); ok && len(sent) == 1 {
		sent = users[0].(map[string]any)
	}
	if _, declared := sent[name]; declared {
		sent[name] = v
	}
}

// changes updates each member that an update takes, one by one, and all of them.
func changes(t *testing.T, w *drive.Resources, thing *drive.Resource, state map[string]any, what string) {
	t.Helper()
	update := w.Doc.Linked(thing.Create, "update")
	properties := update.Body["properties"].(map[string]any)
	done := 0
	var skipped []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		s := properties[name].(map[string]any)
		if s["writeOnly"] == true || s[drive.Immutable] == true || name == "workspace_id" || name == "status" {
			continue
		}
		other, ok := drive.DifferentValue(s, name, state[name])
		if !ok {
			continue
		}
		err := w.Update(thing, map[string]any{name: other})
		var refused *drive.RejectedError
		if errors.As(err, &refused) && refused.Status == 400 {
			skipped = append(skipped, fmt.Sprintf("%s %v: %v", name, other, refused.Fields()))
			continue
		}
		if err != nil {
			t.Errorf("%s: update of %s: %v", what, name, err)
			continue
		}
		done++
		got, err := w.Get(thing)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		for _, d := range drive.Differences(update.Body, map[string]any{name: other}, got, w.NamesOf) {
			t.Errorf("%s: after an update: %s", what, d)
		}
		declare(thing.Sent, name, other)
	}
	if done == 0 {
		t.Errorf("%s: no update was taken: %s", what, strings.Join(skipped, "; "))
	}
	for _, s := range skipped {
		t.Logf("%s: an update alone was refused: %s", what, s)
	}
}
