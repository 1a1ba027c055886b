package assembly_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/testkit/admintest/drive"
)

// TestADeclaringClientDrivesEverySingleton does for settings, which are never created, what
// declarative tools do: it changes each updatable field separately, reads it back with
// everything else unchanged, and restores it.
func TestADeclaringClientDrivesEverySingleton(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.fill(t)
	e.open(t)
	driven := 0
	for _, put := range e.doc.Operations {
		read := e.doc.At("GET", put.Path)
		if put.Method != "PUT" || put.Alias || put.Body == nil || read == nil || strings.HasSuffix(put.Path, "}") {
			continue
		}
		for _, place := range places(e.w, put)[:1] {
			path, err := e.w.Path(read, place, nil)
			if err != nil {
				t.Errorf("%s: %v", put.Path, err)
				continue
			}
			n := 0
			all := drive.Leaves(put.Body)
			for _, m := range all {
				n += e.restored(t, put, path, all, m)
			}
			driven += n
		}
	}
	if driven < 50 {
		t.Errorf("only %d members were driven", driven)
	}
}

// open lets workspaces have settings of their own.
func (in *installation) open(t *testing.T) {
	t.Helper()
	open := map[string]bool{}
	for name := range in.must("GET", "/admin/organisation/settings", rootKey, "")["workspace_overrides"].(map[string]any) {
		open[name] = true
	}
	raw, err := json.Marshal(map[string]any{"workspace_overrides": open})
	if err != nil {
		t.Fatal(err)
	}
	in.must("PUT", "/admin/organisation/settings", rootKey, string(raw))
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

// restored changes one member and changes it back; it returns 1 if the member is read as it
// was written, otherwise 0.
func (e *estate) restored(t *testing.T, put *drive.Operation, path string, all []drive.Leaf, m drive.Leaf) int {
	t.Helper()
	was := e.must("GET", path, rootKey, "")
	old, there := m.In(was)
	other, ok := drive.DifferentValue(m.Schema, m.Name(), old)
	if !there || !ok {
		return 0
	}
	write := func(v any) (int, []byte) { return e.request("PUT", path, rootKey, must(json.Marshal(m.Body(v)))) }
	if status, answer := write(other); status == 400 {
		t.Logf("%s: %s alone was refused: %.200s", put.Path, m, answer)
		return 0
	} else if status != 200 {
		t.Errorf("%s: %s: %d %.300s", put.Path, m, status, answer)
		return 0
	}
	now := e.must("GET", path, rootKey, "")
	if got, _ := m.In(now); fmt.Sprint(got) != fmt.Sprint(other) {
		t.Errorf("%s: %s is %v, sent %v", put.Path, m, got, other)
	}
	same(t, fmt.Sprint(put.Path, " behind a change of ", m), all, m.String(), was, now)
	back := old
	if o, shown := was["origins"].(map[string]any); shown && o[m.String()] != "workspace" {
		back = nil // the organization's value, or none
	}
	if status, answer := write(back); status != 200 {
		t.Errorf("%s: %s back to %v: %d %.300s", put.Path, m, back, status, answer)
		return 0
	}
	same(t, fmt.Sprint(put.Path, " after ", m, " was restored"), all, "", was, e.must("GET", path, rootKey, ""))
	return 1
}

// same holds the plain members of two states against each other, but one.
func same(t *testing.T, what string, all []drive.Leaf, but string, want, got map[string]any) {
	t.Helper()
	for _, m := range all {
		a, _ := m.In(want)
		b, _ := m.In(got)
		if m.String() != but && fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%s: %s is %v, and was %v", what, m, b, a)
		}
	}
}
