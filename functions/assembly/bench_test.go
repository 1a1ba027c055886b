package assembly_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/resource"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest/drive"
)

var benchAdmin = flag.Bool("bench-admin", false, "measure the administration; see make bench-admin")

// The measured operations, and the maximum of the 99th percentile.
const (
	benchResources = 100_000 // in one organization
	benchCalls     = 100
	mostRead       = 5 * time.Millisecond
	mostWrite      = 15 * time.Millisecond
	mostList       = 5 * time.Millisecond  // of a page that was read before
	mostBehind     = 15 * time.Millisecond // of one that a change has just touched
)

// benchLimited are families of which a place may have only a few things, and how many are
// made: so many that a round of creates still fits.
var benchLimited = map[string]int{"/webhooks": 90, "/telemetry-destinations": 90, "/scim/tokens": 90}

// TestSpeedOfTheAdministration measures each family in an organization with 100,000
// resources, on the embedded store. It runs only on request: no other test asserts a time.
func TestSpeedOfTheAdministration(t *testing.T) {
	if !*benchAdmin {
		t.Skip("measures; run make bench-admin")
	}
	e := newEstate(t)
	e.fill(t)
	kinds := e.kinds(t)
	spaces := []string{e.w.In}
	for i := range 9 {
		spaces = append(spaces, e.must("POST", "/workspaces", rootKey, fmt.Sprintf(`{"name":"Bench %d"}`, i))["id"].(string))
	}
	each := benchResources / (len(kinds) - len(benchLimited))
	began := time.Now()
	for _, k := range kinds {
		n := each
		if most, limited := benchLimited[k.name]; limited {
			n = most
		}
		k.grow(t, e, spaces, n)
	}
	fmt.Printf("%d kinds with %d resources each, made in %s; %d calls each\n", len(kinds), each, time.Since(began).Round(time.Second), benchCalls)
	fmt.Printf("%-28s %12s %12s %12s %12s %12s\n", "ms: half, 99 of 100", "read", "update", "create", "list", "list behind")
	e.checked = nil // validation is not measured
	for _, k := range kinds {
		k.measure(t, e)
	}
}

// kind is a family of things to be measured.
type kind struct {
	name   string
	thing  *drive.Resource
	path   string // of creates
	record resource.Record
	ids    []string
}

// kinds finds the stored record of each thing that was made.
func (e *estate) kinds(t *testing.T) (out []*kind) {
	t.Helper()
	for _, create := range e.doc.Creates() {
		read := e.doc.Linked(create, "read")
		if len(drive.Variables(read.Path)) != 1 {
			continue // resources below another one are counted with it
		}
		thing, err := e.w.Find(drive.Collection(read.Path), drive.Workspace)
		if err != nil || thing.Create == nil {
			if thing, err = e.w.Find(drive.Collection(read.Path), drive.Organisation); err != nil || thing.Create == nil {
				continue
			}
		}
		rec, ok := e.stored(t, thing)
		if !ok {
			t.Errorf("%s is not stored", create.Path)
			continue
		}
		k := &kind{name: drive.Collection(read.Path), thing: thing, record: rec}
		for _, enums := range e.w.Variants(create) {
			if again, err := e.w.Create(create, thing.Place, enums); err == nil {
				k.path, _ = e.w.Path(create, thing.Place, enums)
				k.thing = again
				k.record, _ = e.stored(t, again)
				break
			}
		}
		k.path, _, _ = strings.Cut(k.path, "?")
		out = append(out, k)
	}
	return out
}

// stored finds the record of a thing by any of its names.
func (e *estate) stored(t *testing.T, thing *drive.Resource) (resource.Record, bool) {
	t.Helper()
	for _, sc := range []store.Scope{{Org: "first", Workspace: e.w.In}, {Org: "first"}} {
		for _, k := range e.rows.kindsIn(t, sc) {
			for _, name := range thing.Names {
				if rec, ok, err := e.core.Resources.Get(context.Background(), sc, resource.Kind(k), name); err == nil && ok && slices.Contains(thing.Names, rec.ID) {
					return rec, true
				}
			}
		}
	}
	return resource.Record{}, false
}

// kindsIn are the kinds of records in a scope.
func (w *watched) kindsIn(t *testing.T, sc store.Scope) []string {
	t.Helper()
	found := map[string]bool{}
	page, err := w.Store.Table(store.Control).Query(context.Background(), store.Query{Partition: sc.Partition(), Prefix: "COUNT#"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range page.Rows {
		found[strings.TrimPrefix(row.Key.SK(), "COUNT#")] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// grow makes copies of the record: those of workspaces and of both levels in all
// workspaces, most of them in the first one, the others in the organization.
func (k *kind) grow(t *testing.T, e *estate, spaces []string, n int) {
	t.Helper()
	const chunk = 20
	_, versions, err := e.core.Resources.Version(context.Background(), k.record.Scope, k.record.Kind, k.record.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < n; i += chunk {
		err := e.core.Resources.Change(context.Background(), store.Scope{Org: "first"}, func(tx *resource.Tx) error {
			for j := i; j < min(i+chunk, n); j++ {
				rec := k.record
				rec.ID, rec.Name, rec.Rev, rec.Sealed = resource.NewID(), fmt.Sprintf("%s %d", k.record.Name, j), 0, nil
				if rec.Slug != "" {
					rec.Slug = fmt.Sprintf("%.200s-%d", k.record.Slug, j)
				}
				if rec.Kind == sso.KindDomain { // its slug is made of it
					name := fmt.Sprintf("n%d%s", j, k.record.Name)
					rec.Name, rec.Slug, rec.Body = name, sso.Slug(name), bytes.ReplaceAll(rec.Body, []byte(k.record.Name), []byte(name))
				}
				if rec.Scope.Workspace != "" && i*2 > n {
					rec.Scope.Workspace = spaces[(i/chunk)%len(spaces)]
				}
				if err := tx.Create(&rec); err != nil {
					return err
				}
				if versions {
					tx.FirstVersion(&rec)
				}
				if rec.Scope == k.record.Scope {
					k.ids = append(k.ids, rec.ID)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
	}
}

// benchRounds is the number of measured rounds; the best one is reported, because a delay in
// all of them is real.
const benchRounds = 3

func rounds(t *testing.T, e *estate, call func(i int) (method, path string, body []byte)) (best latencies) {
	t.Helper()
	for n := range benchRounds {
		one := timed(t, e, benchCalls, func(i int) (string, string, []byte) { return call(n*benchCalls + i) })
		if one.half > 0 && (best.half == 0 || one.most < best.most) {
			best = one
		}
	}
	return best
}

// timed makes calls and returns the time of the 99th of 100; nothing if the limit of the
// family is reached first. Any other rejection is an error.
func timed(t *testing.T, e *estate, n int, call func(i int) (method, path string, body []byte)) latencies {
	t.Helper()
	all := make([]time.Duration, 0, n)
	for i := range n {
		method, path, body := call(i)
		r := httptest.NewRequest(method, "/v1"+path, bytes.NewReader(body))
		r.Header.Set("x-gateway-api-key", rootKey)
		if len(body) > 0 {
			r.Header.Set("content-type", "application/json")
		}
		w := httptest.NewRecorder()
		began := time.Now()
		e.handler.ServeHTTP(w, r)
		all = append(all, time.Since(began))
		if w.Code == 402 || w.Code == 409 && strings.Contains(w.Body.String(), " has at most ") {
			return latencies{}
		}
		if w.Code >= 300 {
			t.Errorf("%s %s: %d %.300s", method, path, w.Code, w.Body)
			return latencies{}
		}
	}
	slices.Sort(all)
	return latencies{all[n/2], all[(n*99+99)/100-1]}
}

// latencies is how long half of the calls took at most, and 99 of 100.
type latencies struct{ half, most time.Duration }

func (k *kind) measure(t *testing.T, e *estate) {
	t.Helper()
	read := e.doc.Linked(k.thing.Create, "read")
	list := e.doc.At("GET", k.name)
	update := e.doc.Linked(k.thing.Create, "update")
	pick := func() map[string]string {
		v := maps.Clone(k.thing.Variables)
		v[drive.Variables(read.Path)[0]] = k.ids[rand.IntN(len(k.ids))]
		return v
	}
	at := func(op *drive.Operation, values map[string]string) string {
		path, err := e.w.Path(op, k.thing.Place, values)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	paged := func(int) (string, string, []byte) {
		path := at(list, nil)
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		return "GET", fmt.Sprintf("%s%spage_size=50", path, sign), nil
	}
	changes := 0
	change := func(int) (string, string, []byte) {
		values := pick()
		body := e.w.FullUpdate(update, k.thing)
		if _, named := body["name"]; named { // a name that no other one has
			changes++
			body["name"] = fmt.Sprintf("%s-changed-%d", body["name"], changes)
		}
		delete(body, "slug")
		if body["domain"] != nil { // of copies another one, which stays as it is
			body = map[string]any{"allow_subdomains": false}
		}
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return "PUT", at(update, values), raw
	}
	var reads, updates, creates, lists, behind latencies
	reads = rounds(t, e, func(int) (string, string, []byte) { return "GET", at(read, pick()), nil })
	timed(t, e, 1, paged)
	lists = rounds(t, e, paged)
	if update != nil {
		updates = rounds(t, e, change)
	}
	creates = rounds(t, e, func(int) (string, string, []byte) {
		body, err := e.w.CopyBody(k.thing)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return "POST", k.path, raw
	})
	if update != nil { // a list after each change
		for range benchRounds {
			var one latencies
			for i := range benchCalls {
				timed(t, e, 1, func(int) (string, string, []byte) { return change(-i) })
				latency := timed(t, e, 1, paged)
				one.half, one.most = one.half+latency.half/benchCalls, max(one.most, latency.most)
			}
			if behind.most == 0 || one.most < behind.most {
				behind = one
			}
		}
	}
	mark := func(d latencies, most time.Duration) string {
		s := fmt.Sprintf("%.1f %.1f", float64(d.half.Microseconds())/1000, float64(d.most.Microseconds())/1000)
		if d.most > most {
			t.Errorf("%s: %s, at most %s", k.name, s, most)
			s += "!"
		}
		return s
	}
	fmt.Printf("%-28s %12s %12s %12s %12s %12s\n", k.name, mark(reads, mostRead), mark(updates, mostWrite), mark(creates, mostWrite), mark(lists, mostList), mark(behind, mostBehind))
}
