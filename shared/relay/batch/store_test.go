package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/seal"
	"gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

var update = flag.Bool("update", false, "write the golden files")

// clock is a time that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }

func (c *clock) pass(d time.Duration) { c.mu.Lock(); c.t = c.t.Add(d); c.mu.Unlock() }

func batches(t *testing.T) (*Batches, *clock) {
	t.Helper()
	c := &clock{t: time.Now().Truncate(time.Second)}
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	master, err := local.Open(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	return &Batches{Now: c.now, Store: s, Sealer: seal.New(master, c.now)}, c
}

var (
	mine   = store.Scope{Org: "o", Workspace: "w"}
	theirs = store.Scope{Org: "o", Workspace: "w2"}
)

func make1(t *testing.T, s *Batches) *Batch {
	t.Helper()
	b, err := s.Create(t.Context(), mine, Definition{Endpoint: "/v1/embeddings", Input: "gw_file_1", Window: Immediate, Key: "hash", Options: map[string]string{"x-gateway-config": `{"api_key":"secret-of-a-config"}`}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestABatchIsItsWorkspaces(t *testing.T) {
	s, _ := batches(t)
	b := make1(t, s)
	got, err := s.Get(t.Context(), mine, b.ID)
	if err != nil || got == nil || got.Input != "gw_file_1" || got.Key != "hash" || got.Status != Validating {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := s.Get(t.Context(), theirs, b.ID); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Cancel(t.Context(), theirs, b.ID); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range []string{"", "x", IDPrefix, IDPrefix + "none", strings.Repeat("x", 2000)} {
		if got, err := s.Get(t.Context(), mine, id); got != nil || err != nil {
			t.Errorf("%q: %+v, %v", id, got, err)
		}
	}
	item, _, err := s.table().Get(t.Context(), key(mine, b.ID), true)
	if err != nil || strings.Contains(fmt.Sprint(item), "secret-of-a-config") || bytes.Contains(item.Bytes("def"), []byte("secret-of-a-config")) {
		t.Errorf("the definition is not sealed: %v, %v", item, err)
	}
}

func TestOneWorkerHasABatchAtATime(t *testing.T) {
	s, c := batches(t)
	b := make1(t, s)
	var wg sync.WaitGroup
	var mu sync.Mutex
	took := 0
	for i := range 8 {
		wg.Go(func() {
			_, err := s.AcquireLease(t.Context(), mine, b.ID, fmt.Sprintf("p%d/1", i), 0, time.Minute, false)
			if err == nil {
				mu.Lock()
				took++
				mu.Unlock()
			} else if !errors.Is(err, ErrTaken) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took != 1 {
		t.Fatalf("%d workers have it", took)
	}
	got, err := s.Get(t.Context(), mine, b.ID)
	if err != nil {
		t.Fatal(err)
	}
	holder := got.Holder(c.now())
	c.pass(50 * time.Second)
	if err := s.Renew(t.Context(), mine, b.ID, holder, time.Minute); err != nil {
		t.Fatal(err)
	}
	c.pass(50 * time.Second)
	if _, err := s.AcquireLease(t.Context(), mine, b.ID, "q/1", 0, time.Minute, false); !errors.Is(err, ErrTaken) {
		t.Fatalf("a renewed lease was taken: %v", err)
	}
	c.pass(20 * time.Second)
	if _, err := s.AcquireLease(t.Context(), mine, b.ID, "q/1", 0, time.Minute, false); err != nil {
		t.Fatalf("a lease that ran out is not given: %v", err)
	}
	if err := s.Renew(t.Context(), mine, b.ID, holder, time.Minute); !errors.Is(err, ErrTaken) {
		t.Errorf("the first holder: %v", err)
	}
	if _, err := s.Release(t.Context(), mine, b.ID, holder, func(p *Progress) { p.Step = 99 }); !errors.Is(err, ErrTaken) {
		t.Errorf("the first holder: %v", err)
	}
	if _, err := s.Release(t.Context(), mine, b.ID, "q/1", func(p *Progress) { p.Step++ }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AcquireLease(t.Context(), mine, b.ID, "r/1", 0, time.Minute, false); !errors.Is(err, ErrTaken) {
		t.Errorf("a stale message: %v", err)
	}
	// The lease of a process that no longer exists does not count.
	if _, err := s.AcquireLease(t.Context(), mine, b.ID, "r/1", 1, time.Minute, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AcquireLease(t.Context(), mine, b.ID, "r/2", 1, time.Minute, true); !errors.Is(err, ErrTaken) {
		t.Errorf("of the same process: %v", err)
	}
	if _, err := s.AcquireLease(t.Context(), mine, b.ID, "new/1", 1, time.Minute, true); err != nil {
		t.Error(err)
	}
}

func TestCancelIsSeenByWhoWorks(t *testing.T) {
	s, _ := batches(t)
	b := make1(t, s)
	if _, err := s.AcquireLease(t.Context(), mine, b.ID, "p/1", 0, time.Minute, false); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Cancel(t.Context(), mine, b.ID); err != nil || got.Status != Cancelling {
		t.Fatalf("%+v, %v", got, err)
	}
	got, err := s.Release(t.Context(), mine, b.ID, "p/1", func(p *Progress) {
		if p.Status != Cancelling {
			t.Errorf("the worker sees %s", p.Status)
		}
		p.End(Cancelled, s.Now())
	})
	if err != nil || got.Status != Cancelled {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := s.Cancel(t.Context(), mine, b.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v", err)
	}
}

func TestBatchesThatNobodyGoesOnWithAreFound(t *testing.T) {
	s, c := batches(t)
	b := make1(t, s)
	overdue := func(process string, alone bool) int {
		t.Helper()
		due, steps, err := s.Overdue(t.Context(), time.Minute, process, alone)
		if err != nil || len(due) != len(steps) {
			t.Fatal(err)
		}
		for _, d := range due {
			if d.ID != b.ID || d.Scope != mine {
				t.Errorf("%+v", d)
			}
		}
		return len(due)
	}
	if n := overdue("p", false); n != 0 {
		t.Errorf("%d are overdue at once", n)
	}
	c.pass(61 * time.Second)
	if n := overdue("p", false); n != 1 {
		t.Errorf("%d are overdue after a minute", n)
	}
	if _, err := s.AcquireLease(t.Context(), mine, b.ID, "p/1", 0, time.Minute, false); err != nil {
		t.Fatal(err)
	}
	if n := overdue("q", false) + overdue("p", true); n != 0 {
		t.Errorf("one that is worked on is overdue")
	}
	if n := overdue("q", true); n != 1 {
		t.Error("one whose process died is not found")
	}
	if _, err := s.Release(t.Context(), mine, b.ID, "p/1", func(p *Progress) { p.End(Completed, c.now()) }); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Hour)
	if n := overdue("q", true); n != 0 {
		t.Error("one that has ended is overdue")
	}
}

// Every line has one accepted response, in any order of arrival; long responses are returned
// completely.
func TestALineHasOneAnswer(t *testing.T) {
	s, _ := batches(t)
	b := make1(t, s)
	const lines = 12
	type try struct {
		line int
		good bool
		row  []byte
	}
	var tries []try
	for line := 1; line <= lines; line++ {
		for n := range 3 {
			size := []int{10, responsePart, responsePart + 1, 3*responsePart + 7}[rand.N(4)]
			tries = append(tries, try{line, (line+n)%2 == 0, append(bytes.Repeat([]byte{byte('a' + n)}, size), fmt.Sprintf("%d\n", line)...)})
		}
	}
	rand.Shuffle(len(tries), func(i, j int) { tries[i], tries[j] = tries[j], tries[i] })
	var wg sync.WaitGroup
	var mu sync.Mutex
	said := map[int]map[bool]int{}
	for _, y := range tries {
		wg.Go(func() {
			good, err := s.Accept(t.Context(), mine, b.ID, y.line, y.good, y.row)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if said[y.line] == nil {
				said[y.line] = map[bool]int{}
			}
			said[y.line][good]++
		})
	}
	wg.Wait()
	read := map[int]bool{}
	for _, good := range []bool{true, false} {
		text, err := io.ReadAll(s.Rows(t.Context(), mine, b.ID, good))
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		for row := range strings.Lines(string(text)) {
			var found *try
			for i := range tries {
				if string(tries[i].row) == row && tries[i].good == good {
					found = &tries[i]
				}
			}
			if found == nil {
				t.Fatalf("a row that nobody gave, of %d bytes", len(row))
			}
			if read[found.line] || found.line <= last || len(said[found.line]) != 1 || said[found.line][good] != 3 {
				t.Errorf("line %d: %v", found.line, said[found.line])
			}
			read[found.line], last = true, found.line
		}
	}
	if len(read) != lines {
		t.Errorf("%d lines have an answer", len(read))
	}
	done, err := s.Accepted(t.Context(), mine, b.ID, []int{1, 2, lines + 1})
	if err != nil || len(done) != 2 {
		t.Errorf("%v, %v", done, err)
	}
}

func TestListsGoFromTheNewest(t *testing.T) {
	s, c := batches(t)
	var ids []string
	for range 5 {
		ids = append([]string{make1(t, s).ID}, ids...)
		c.pass(time.Second)
	}
	var got []string
	for after := ""; ; {
		page, more, err := s.List(t.Context(), mine, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page {
			got = append(got, b.ID)
		}
		if !more {
			break
		}
		after = got[len(got)-1]
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("%v, want %v", got, ids)
	}
}

// TestObjects holds the shapes of batches and rows of output to golden files.
func TestObjects(t *testing.T) {
	full := Batch{ID: IDPrefix + "01", Definition: Definition{Endpoint: "/v1/chat/completions", Input: "gw_file_1", Window: Day, Metadata: json.RawMessage(`{"a":"b"}`)}}
	full.Progress = Progress{
		Status: Failed, Created: 1, Began: 2, Expires: 86401, Finalizing: 3, Ended: 4, Total: 3, Succeeded: 1, Bad: 2, Output: "gw_file_o", Errors: "gw_file_e",
		Problems: []Problem{{Code: "invalid_request", Message: "url must be <x>", Param: "url", Line: 7}, {Code: "not_found", Message: "gone"}},
		Provider: Provider{Batch: "batch_1", File: "file-1", Status: "failed", Answer: json.RawMessage(`{"id":"batch_1"}`)},
	}
	fresh := Batch{ID: IDPrefix + "02", Definition: Definition{Endpoint: "/v1/embeddings", Input: "gw_file_2", Window: Immediate}, Progress: Progress{Status: Validating, Created: 1, Expires: 86401}}
	for name, got := range map[string][]byte{
		"batch_failed.json": full.Append(nil, true), "batch_new.json": fresh.Append(nil, true),
		"row_answered.json":   AppendResult(nil, full.ID, 3, `r"1`, 200, "01REQ", []byte("{\n \"id\": \"x\"\n}")),
		"row_text.json":       AppendResult(nil, full.ID, 3, "r", 502, "01REQ", []byte("no JSON")),
		"row_unanswered.json": AppendFailure(nil, full.ID, 4, "r", "batch_expired", "too late"),
	} {
		if !json.Valid(got) {
			t.Errorf("%s is not valid JSON: %s", name, got)
		}
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestMessages(t *testing.T) {
	m := Message(mine, "gw_batch_1", 7, time.Hour)
	s, err := ReadMessage(m.Body)
	if err != nil || s.Scope() != mine || s.Batch != "gw_batch_1" || s.Step != 7 || m.Group != "o" || m.Check() != nil {
		t.Errorf("%+v %+v %v", m, s, err)
	}
	if m := Message(store.Scope{Org: "an id with spaces", Workspace: "w"}, "b", 0, 0); m.Check() != nil {
		t.Error(m.Check())
	}
	for _, bad := range []string{"", "{}", "null", `{"org":"o"}`, `{"org":7}`, "\xff"} {
		if _, err := ReadMessage([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if s, err := ReadMessage(SweepMessage().Body); err != nil || !s.Sweep {
		t.Errorf("%+v %v", s, err)
	}
}

// The definition of a batch is limited, so that it fits into an item of the store.
func TestALongDefinitionIsRefused(t *testing.T) {
	s, _ := batches(t)
	_, err := s.Create(t.Context(), mine, Definition{Input: "gw_file_1", Window: Day, Create: json.RawMessage(`{"provider_options":"` + strings.Repeat("x", 500<<10) + `"}`)})
	if f := fault.From(err); err == nil || f.Code != fault.BodyTooLarge {
		t.Fatalf("%v", err)
	}
	if _, err := s.Create(t.Context(), mine, Definition{Input: "gw_file_1", Window: Day, Create: json.RawMessage(`{"provider_options":"` + strings.Repeat("x", 100<<10) + `"}`)}); err != nil {
		t.Error(err)
	}
}

// The progress fits into an item, regardless of the provider's response.
func TestLongProgressIsKept(t *testing.T) {
	s, _ := batches(t)
	b := make1(t, s)
	for name, text := range map[string]string{"control characters": "\x01", "letters": "é", "quotes": `"`} {
		long := strings.Repeat(text, 40<<10)
		_, err := s.Change(t.Context(), mine, b.ID, "", func(b *Batch) error {
			b.Provider.Answer = json.RawMessage(`"` + strings.Repeat("x", 300<<10) + `"`)
			b.Problems = nil
			for range 100 {
				b.Problems = append(b.Problems, Problem{Code: long, Message: long, Param: long})
			}
			return nil
		})
		got, gerr := s.Get(t.Context(), mine, b.ID)
		if err != nil || gerr != nil || len(got.Problems) == 0 || !strings.HasPrefix(got.Problems[0].Message, text) {
			t.Errorf("%s: %v %v", name, err, gerr)
		}
	}
}

// A lease taken by an attempt with a lost response belongs to its holder.
func TestALeaseIsTakenAgainByItsHolder(t *testing.T) {
	s, _ := batches(t)
	b := make1(t, s)
	for range 2 {
		if _, err := s.AcquireLease(t.Context(), mine, b.ID, "p/1", 0, time.Minute, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AcquireLease(t.Context(), mine, b.ID, "p/2", 0, time.Minute, false); !errors.Is(err, ErrTaken) {
		t.Errorf("%v", err)
	}
}

// A workspace has a limited number of open batches, under concurrent starts and ends; one that
// has ended is uncounted once, however often that is reported.
func TestOpenBatchesAreBounded(t *testing.T) {
	s, c := batches(t)
	d := Definition{Endpoint: "/v1/embeddings", Input: "gw_file_1", Window: Immediate, Key: "hash"}
	var mu sync.Mutex
	var made []string
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range MaxOpen/4 + 5 {
				b, err := s.Create(t.Context(), mine, d)
				mu.Lock()
				if err == nil {
					made = append(made, b.ID)
				} else if f := fault.From(err); f.Status() != 429 || !strings.Contains(f.Message, "100 unfinished batches") {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(made) != MaxOpen {
		t.Fatalf("%d batches stand open", len(made))
	}
	if _, err := s.Create(t.Context(), theirs, d); err != nil {
		t.Errorf("another workspace: %v", err)
	}
	end := func(id string) {
		t.Helper()
		if _, err := s.AcquireLease(t.Context(), mine, id, "p/1", 0, time.Minute, false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Release(t.Context(), mine, id, "p/1", func(p *Progress) { p.End(Completed, c.now()) }); err != nil {
			t.Fatal(err)
		}
	}
	end(made[0])
	for range 2 { // as a sweep does
		if err := s.leave(t.Context(), mine, made[0]); err != nil {
			t.Fatal(err)
		}
	}
	make1(t, s)
	if _, err := s.Create(t.Context(), mine, d); !fault.Is(err, fault.RateLimited) {
		t.Errorf("one batch made room for two: %v", err)
	}
	// A batch that has ended and is still in the list is removed by the sweep.
	if _, err := s.Change(t.Context(), mine, made[1], "", func(b *Batch) error { b.Progress.End(Failed, c.now()); return nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Overdue(t.Context(), time.Hour, "p", false); err != nil {
		t.Fatal(err)
	}
	make1(t, s)
	if _, err := s.Create(t.Context(), mine, d); !fault.Is(err, fault.RateLimited) {
		t.Errorf("the sweep made room for two: %v", err)
	}
}

// Batches that were created before they were counted leave the due list without changing the
// count.
func TestBatchesThatWereNeverCountedLeaveNoRoom(t *testing.T) {
	s, _ := batches(t)
	b := make1(t, s)
	row := store.Row{Key: dueKey(b.ID), Item: store.Item{"org": mine.Org, "ws": mine.Workspace}}
	if err := s.table().Put(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if err := s.leave(t.Context(), mine, b.ID); err != nil {
		t.Fatal(err)
	}
	item, _, err := s.table().Get(t.Context(), openKey(mine), true)
	if err != nil || item.Int("n") != 1 {
		t.Errorf("%v %v", item, err)
	}
	if _, there, err := s.table().Get(t.Context(), row.Key, true); there || err != nil {
		t.Errorf("it is due still: %v", err)
	}
}
