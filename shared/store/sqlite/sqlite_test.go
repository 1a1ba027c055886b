package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/testkit/storetest"
)

func openTest(t *testing.T, o Options) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "data", "gateway.db"), o)
}

func openAt(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return openTest(t, Options{}) })
}

func TestContractDurable(t *testing.T) {
	if testing.Short() {
		t.Skip("the disk is waited for at each commit; left out by -short")
	}
	storetest.Run(t, func(t *testing.T) store.Store { return openTest(t, Options{Durable: true, Readers: 1}) })
}

var testPartition = store.Scope{Org: "o", Workspace: "w"}.Partition()

func bump(key store.Key) store.Update {
	return store.Update{Key: key, Add: []store.Increment{{Path: store.At("n"), By: 1}}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hold blocks the writer after its next commit until release is called.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	entered, gate := make(chan struct{}), make(chan struct{})
	var once, open sync.Once
	s.Watch(func(store.TableName, store.Key) { once.Do(func() { close(entered); <-gate }) })
	go func() { _ = s.Table(store.Audit).Put(context.Background(), store.Row{Key: testPartition.Key("hold")}) }()
	<-entered
	release = func() { open.Do(func() { close(gate) }) }
	t.Cleanup(release)
	return release
}

// waitQueued waits until n operations are in the writer's queue.
func waitQueued(t *testing.T, s *Store, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(s.queue) != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d operations are queued, want %d", len(s.queue), n)
		}
	}
}

func TestReadsDoNotWaitForTheWriter(t *testing.T) {
	s := openTest(t, Options{})
	key := testPartition.Key("k")
	_, _, err := s.Table(store.Rate).Update(t.Context(), bump(key))
	must(t, err)
	release := hold(t, s)
	item, ok, err := s.Table(store.Rate).Get(t.Context(), key, true)
	if err != nil || !ok || item.Int("n") != 1 {
		t.Errorf("got %v, %v, %v", item, ok, err)
	}
	release()
}

func TestOneGroupHoldsRefusalsAbandonedAndGoodOperations(t *testing.T) {
	s := openTest(t, Options{})
	release := hold(t, s)
	var results sync.Map
	s.Watch(func(_ store.TableName, k store.Key) { results.Store(k.SK(), true) })

	errs := map[string]chan error{}
	start := func(name string, f func() error) {
		answer := make(chan error, 1)
		errs[name] = answer
		queued := len(s.queue) + 1
		go func() { answer <- f() }()
		waitQueued(t, s, queued)
	}
	ctx, cancel := context.WithCancel(t.Context())
	control := s.Table(store.Control)
	start("good", func() error { _, _, err := control.Update(t.Context(), bump(testPartition.Key("good"))); return err })
	start("refused", func() error {
		return s.Transact(t.Context(),
			store.Action{Table: store.Control, Put: &store.Put{Row: store.Row{Key: testPartition.Key("refused")}}},
			store.Action{Table: store.Control, Check: &store.Check{Key: testPartition.Key("good"), If: []store.Cond{store.IfAbsent()}}})
	})
	start("abandoned", func() error { return control.Put(ctx, store.Row{Key: testPartition.Key("abandoned")}) })
	start("no map", func() error {
		_, _, err := control.Update(t.Context(), store.Update{
			Key: testPartition.Key("good"), Set: []store.Assign{{Path: store.In("m", "k"), Value: "v"}},
		})
		return err
	})
	start("last", func() error { _, _, err := control.Update(t.Context(), bump(testPartition.Key("good"))); return err })
	cancel()
	if err := <-errs["abandoned"]; !errors.Is(err, context.Canceled) {
		t.Errorf("the abandoned operation's error is %v", err)
	}
	release()
	must(t, <-errs["good"])
	must(t, <-errs["last"])
	if c, ok := store.AsCondition(<-errs["refused"]); !ok || c.Action != 1 || c.Current.Int("n") != 1 {
		t.Errorf("the refused operation's error is %+v", c)
	}
	if err := <-errs["no map"]; !errors.Is(err, store.ErrNoMap) {
		t.Errorf("the malformed operation's error is %v", err)
	}
	page, err := control.Query(t.Context(), store.Query{Partition: testPartition})
	must(t, err)
	if len(page.Rows) != 1 || page.Rows[0].Item.Int("n") != 2 {
		t.Errorf("rows are %v", page.Rows)
	}
	for name, want := range map[string]bool{"good": true, "refused": false, "abandoned": false} {
		if _, ok := results.Load(name); ok != want {
			t.Errorf("watchers were told of %s: %v", name, ok)
		}
	}
}

func TestWatchersKnowBeforeTheWriterIsAnswered(t *testing.T) {
	s := openTest(t, Options{})
	type write struct {
		table store.TableName
		sk    string
	}
	var mu sync.Mutex
	seen := map[write]int{}
	for range 2 {
		s.Watch(func(table store.TableName, k store.Key) {
			mu.Lock()
			defer mu.Unlock()
			seen[write{table, k.SK()}]++
		})
	}
	check := func(table store.TableName, sks ...string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		for _, sk := range sks {
			if n := seen[write{table, sk}]; n != 2 {
				t.Errorf("%s/%s was told %d times to two watchers", table, sk, n)
			}
		}
		if len(seen) != len(sks) {
			t.Errorf("told of %v, want %v", seen, sks)
		}
		clear(seen)
	}
	p, ctx, control := testPartition, t.Context(), s.Table(store.Control)
	must(t, control.Put(ctx, store.Row{Key: p.Key("a")}))
	check(store.Control, "a")
	must(t, control.PutMany(ctx, []store.Row{{Key: p.Key("b")}, {Key: p.Key("c")}}))
	check(store.Control, "b", "c")
	_, _, err := control.Update(ctx, bump(p.Key("d")))
	must(t, err)
	check(store.Control, "d")
	must(t, control.Delete(ctx, p.Key("d")))
	check(store.Control, "d")
	u := bump(p.Key("f"))
	must(t, s.Transact(ctx,
		store.Action{Table: store.Keys, Put: &store.Put{Row: store.Row{Key: p.Key("e")}}},
		store.Action{Table: store.Keys, Update: &u},
		store.Action{Table: store.Keys, Check: &store.Check{Key: p.Key("g"), If: []store.Cond{store.IfAbsent()}}},
	))
	check(store.Keys, "e", "f")
	if err := control.Put(ctx, store.Row{Key: p.Key("a")}, store.IfAbsent()); err == nil {
		t.Error("the condition held")
	}
	check(store.Control)
}

func TestExpiredRowsAreDeleted(t *testing.T) {
	var now atomic.Int64
	now.Store(1_000_000)
	s := openTest(t, Options{Clock: func() time.Time { return time.Unix(now.Load(), 0) }})
	var rows []store.Row
	for i := range 3*sweepLimit + 10 {
		r := store.Row{Key: testPartition.Key(fmt.Sprintf("%05d", i))}
		if i%10 != 0 {
			r.Expires = time.Unix(1_000_000+int64(i), 0)
		}
		rows = append(rows, r)
	}
	must(t, s.Table(store.Usage).PutMany(t.Context(), rows))
	must(t, s.Table(store.Keys).PutMany(t.Context(), rows))
	stored := func(name store.TableName) (n int) {
		c, err := s.reader(t.Context())
		must(t, err)
		defer s.release(c)
		counts, err := c.numbers("SELECT count(*) FROM " + string(name))
		must(t, err)
		return int(counts[0])
	}
	for _, at := range []int64{1_000_000, 1_000_500, 2_000_000} {
		now.Store(at)
		want := 0
		for _, r := range rows {
			if r.Expires.IsZero() || r.Expires.Unix() > at {
				want++
			}
		}
		page, err := s.Table(store.Usage).Query(t.Context(), store.Query{Partition: testPartition, CountOnly: true})
		must(t, err)
		if page.Count != want {
			t.Errorf("at %d: %d rows are read before the sweep, want %d", at, page.Count, want)
		}
		must(t, s.sweep(t.Context()))
		for _, name := range []store.TableName{store.Usage, store.Keys} {
			if n := stored(name); n != want {
				t.Errorf("at %d: %d rows of %s are stored after the sweep, want %d", at, n, name, want)
			}
		}
	}
}

func TestTheJanitorSweepsOnItsOwn(t *testing.T) {
	s := openTest(t, Options{SweepEvery: time.Millisecond})
	key := testPartition.Key("k")
	must(t, s.Table(store.Rate).Put(t.Context(), store.Row{Key: key, Expires: time.Now().Add(-time.Hour)}))
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := s.Table(store.Rate).Put(t.Context(), store.Row{Key: key, Expires: time.Now().Add(time.Hour)}, store.IfAbsent())
		if err == nil {
			return
		}
		if _, ok := store.AsCondition(err); !ok || time.Now().After(end) {
			t.Fatalf("the expired row is still there: %v", err)
		}
	}
}

func TestTheLogIsMovedIntoTheFile(t *testing.T) {
	s := openTest(t, Options{})
	blob := make([]byte, 200<<10)
	for i := range 2 * restartPages * pageBytes / len(blob) {
		for j := range len(blob) / 1000 { // a page that does not change is not written
			blob[j*1000]++
		}
		must(t, s.Table(store.Usage).Put(t.Context(), store.Row{
			Key: testPartition.Key(fmt.Sprint(i % 20)), Item: store.Item{"b": blob, "i": int64(i)},
		}))
	}
	wal, err := os.Stat(s.path + "-wal")
	must(t, err)
	if limit := int64(restartPages+2*checkpointPages) * pageBytes; wal.Size() > limit {
		t.Errorf("the write-ahead log has %d bytes, at most %d are allowed", wal.Size(), limit)
	}
	file, err := os.Stat(s.path)
	must(t, err)
	if file.Size() < 20*int64(len(blob)) {
		t.Errorf("the file has %d bytes: nothing was moved into it", file.Size())
	}
}

func TestAFullDiskFailsOnlyWhatDoesNotFit(t *testing.T) {
	s := openTest(t, Options{})
	ctx, usage := t.Context(), s.Table(store.Usage)
	small := testPartition.Key("small")
	_, _, err := usage.Update(ctx, bump(small))
	must(t, err)
	must(t, s.writer.c.once("PRAGMA max_page_count = 200"))
	blob := make([]byte, 100<<10)
	stored, refused := 0, 0
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range 20 {
		wg.Add(2)
		go func() {
			defer wg.Done()
			err := usage.Put(ctx, store.Row{Key: testPartition.Key("large", fmt.Sprint(i)), Item: store.Item{"b": blob}})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				stored++
			case strings.Contains(err.Error(), "full"):
				refused++
			default:
				t.Error(err)
			}
		}()
		go func() {
			defer wg.Done()
			if _, _, err := usage.Update(ctx, bump(small)); err != nil {
				t.Errorf("an update in place failed: %v", err)
			}
		}()
	}
	wg.Wait()
	if stored == 0 || refused == 0 {
		t.Errorf("%d writes were kept and %d refused", stored, refused)
	}
	rows := 0
	for q := (store.Query{Partition: testPartition, Prefix: "large#"}); ; {
		page, err := usage.Query(ctx, q)
		must(t, err)
		rows += page.Count
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if rows != stored {
		t.Errorf("%d rows are there, %d were acknowledged", rows, stored)
	}
	item, _, err := usage.Get(ctx, small, true)
	must(t, err)
	if item.Int("n") != 21 {
		t.Errorf("the counter is %d, want 21", item.Int("n"))
	}
}

func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	s := openAt(t, path, Options{})
	var done atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				_, _, err := s.Table(store.Rate).Update(context.Background(), bump(testPartition.Key("k")))
				if err != nil {
					if !errors.Is(err, store.ErrClosed) {
						t.Error(err)
					}
					return
				}
				done.Add(1)
				if _, _, err := s.Table(store.Rate).Get(context.Background(), testPartition.Key("k"), true); err != nil && !errors.Is(err, store.ErrClosed) {
					t.Error(err)
				}
			}
		}()
	}
	for done.Load() < 100 {
		time.Sleep(time.Millisecond)
	}
	must(t, s.Close())
	must(t, s.Close())
	wg.Wait()
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a write-ahead log is left: %v", err)
	}
	again := openAt(t, path, Options{})
	item, _, err := again.Table(store.Rate).Get(t.Context(), testPartition.Key("k"), true)
	must(t, err)
	if item.Int("n") != done.Load() {
		t.Errorf("%d updates are there, %d were acknowledged", item.Int("n"), done.Load())
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Run("a file that is open", func(t *testing.T) {
		s := openTest(t, Options{})
		_, err := Open(s.path, Options{})
		if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), s.path) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
			t.Errorf("error is %v", err)
		}
		must(t, s.Close())
		openAt(t, s.path, Options{})
	})
	t.Run("a file of a newer version", func(t *testing.T) {
		s := openTest(t, Options{})
		must(t, s.writer.c.once(fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1)))
		must(t, s.Close())
		if _, err := Open(s.path, Options{}); err == nil || !strings.Contains(err.Error(), "version") {
			t.Errorf("error is %v", err)
		}
		if _, err := Open(s.path, Options{}); errors.Is(err, ErrInUse) {
			t.Error("a failed open keeps the lock")
		}
	})
	t.Run("what is not a database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "gateway.db")
		must(t, os.WriteFile(path, []byte(strings.Repeat("not a database\n", 1000)), 0o600))
		if _, err := Open(path, Options{}); err == nil {
			t.Error("opened")
		}
	})
	t.Run("a directory that cannot be made", func(t *testing.T) {
		if _, err := Open("/dev/null/gateway.db", Options{}); err == nil {
			t.Error("opened")
		}
	})
}

func TestOddPathsAndPrivateFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%20é", "gateway.db")
	s := openAt(t, path, Options{})
	must(t, s.Table(store.Rate).Put(t.Context(), store.Row{Key: testPartition.Key("k")}))
	if _, ok, err := s.Table(store.Rate).Get(t.Context(), testPartition.Key("k"), true); !ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "gateway.db") {
			t.Errorf("%s was made beside the data file", f.Name())
		}
		if info, err := f.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}
