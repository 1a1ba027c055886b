package assembly_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/testkit/admintest/drive"
)

const callsFile = "testdata/calls.txt"

// counts are calls of the store.
type counts struct{ reads, writes int }

func (c counts) String() string { return fmt.Sprintf("%2d %2d", c.reads, c.writes) }

// counted makes a successful call and counts its calls of the store; the caller is already
// cached.
func (e *estate) counted(t *testing.T, method, path string, body []byte) (counts, bool) {
	t.Helper()
	e.send("GET", "/admin/organisation/settings", rootKey, nil)
	e.rows.mu.Lock()
	before := counts{e.rows.reads, e.rows.writes}
	e.rows.mu.Unlock()
	got := e.send(method, path, rootKey, body)
	e.rows.mu.Lock()
	defer e.rows.mu.Unlock()
	return counts{e.rows.reads - before.reads, e.rows.writes - before.writes}, got.Code < 300
}

// Limits of the store calls of one call. A write is one transaction, plus the lookups of a
// family before it, plus separately reported events.
const (
	mostReadsOfRead  = 8
	mostReadsOfWrite = 24
	mostWrites       = 3
)

// TestCallsOfTheStore counts the store calls of each operation, and compares the table with
// testdata/calls.txt. A read by id needs a small constant number, and a list as many with many
// entries as with few.
func TestCallsOfTheStore(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.fill(t)
	few := e.lists(t)
	for _, k := range e.kinds(t) {
		k.grow(t, e, []string{e.w.In}, 40)
	}
	many := e.lists(t)
	var table []string
	for _, name := range slices.Sorted(maps.Keys(few)) {
		a, b := few[name], many[name]
		if b.warm.reads > a.warm.reads || b.warm.writes != 0 {
			t.Errorf("%s asks the store for %s with few entries, and for %s with many", name, a.warm, b.warm)
		}
		table = append(table, fmt.Sprintf("%-68s %s   behind a change %s", name, b.warm, b.first))
	}
	ops := slices.Clone(e.doc.Operations)
	slices.SortStableFunc(ops, func(a, b *drive.Operation) int { // deletions are last, because other operations need the resources
		if a.Method != "DELETE" || b.Method != "DELETE" {
			return strings.Count(a.Method, "DELETE") - strings.Count(b.Method, "DELETE")
		}
		return strings.Count(b.Path, "/") - strings.Count(a.Path, "/")
	})
	for _, op := range ops {
		if op.Alias || op.Public || op.Tag == "inference" || isList(op) || slices.Contains(unprepared, op.Method+" "+op.Path) {
			continue
		}
		for _, place := range places(e.w, op)[:1] {
			if row := e.callsOf(t, op, place); row != "" {
				table = append(table, row)
			}
		}
	}
	text := "# What each operation asks of the store, with the caller known: reads, and writes, of\n" +
		"# which a transaction is one. Lists have 40 entries and more of each kind.\n" +
		"# Written by: go test ./functions/assembly -run CallsOfTheStore -update\n" + strings.Join(table, "\n") + "\n"
	if *update {
		if err := os.WriteFile(callsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(callsFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("the calls changed (-want +got):\n%s", diff)
	}
}

func isList(op *drive.Operation) bool {
	return op.Method == "GET" && !strings.HasSuffix(op.Path, "}") && slices.ContainsFunc(op.Query, func(p drive.Param) bool { return strings.HasSuffix(p.Name, "page_size") || p.Name == "pageSize" })
}

// listed are the store calls of a list after a change, and of an unchanged one.
type listed struct{ first, warm counts }

// lists reads every list of a collection twice after a change.
func (e *estate) lists(t *testing.T) map[string]listed {
	t.Helper()
	out := map[string]listed{}
	for _, op := range e.doc.Operations {
		if op.Alias || op.Public || op.Tag == "inference" || !isList(op) {
			continue
		}
		for _, place := range places(e.w, op) {
			path, err := e.w.Path(op, place, nil)
			if err != nil {
				t.Errorf("%s: %v", op.Path, err)
				continue
			}
			e.must("PUT", "/admin/workspaces/"+e.w.In, rootKey, `{"description":"changed"}`)
			first, ok := e.counted(t, "GET", path, nil)
			if !ok {
				continue // a list of workspaces alone
			}
			warm, _ := e.counted(t, "GET", path, nil)
			l := line{op: op, place: place}
			out[l.name()] = listed{first, warm}
		}
	}
	return out
}

// callsOf is the row of one operation.
func (e *estate) callsOf(t *testing.T, op *drive.Operation, place drive.Place) string {
	t.Helper()
	if n := strings.LastIndex(op.Path, "/{"); n >= 0 && op.Method == "DELETE" {
		e.w.InvalidateIn(op.Path[:n]) // so that it is one that nothing uses
		defer e.w.InvalidateIn(op.Path[:n])
	}
	path, sent, err := once(e.w, op, place)
	if err != nil {
		t.Errorf("%s %s: %v", op.Method, op.Path, err)
		return ""
	}
	var body []byte
	if op.Body != nil {
		if body, err = json.Marshal(sent); err != nil {
			t.Fatal(err)
		}
	}
	if op.Method == "GET" {
		e.counted(t, op.Method, path, body)
	}
	got, ok := e.counted(t, op.Method, path, body)
	name := op.Method + " " + op.Path
	switch {
	case !ok:
		return fmt.Sprintf("%-68s refused", name)
	case op.Method == "GET" && (got.reads > mostReadsOfRead || got.writes > 0), got.reads > mostReadsOfWrite, got.writes > mostWrites:
		t.Errorf("%s asks the store for %s", name, got)
	}
	return fmt.Sprintf("%-68s %s", name, got)
}
