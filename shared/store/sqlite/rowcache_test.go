package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/store"
)

// copyOpen copies the files of a running store, as a kill would leave them, and opens the
// copy.
func copyOpen(t *testing.T, s *Store) *Store {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob(s.path + "*")
	must(t, err)
	for _, f := range files {
		if !strings.HasSuffix(f, "-shm") && !strings.HasSuffix(f, ".lock") {
			copyFile(t, f, filepath.Join(dir, filepath.Base(f)))
		}
	}
	c, err := Open(filepath.Join(dir, filepath.Base(s.path)), Options{})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func logVariants(t *testing.T, f func(*testing.T, Options)) {
	t.Run("mapped", func(t *testing.T) { f(t, Options{}) })
	t.Run("written", func(t *testing.T) { f(t, Options{NoMap: true}) })
}

// TestLoggedUpdatesSurvive compares a copy of the files at random moments with the store.
func TestLoggedUpdatesSurvive(t *testing.T) {
	logVariants(t, func(t *testing.T, o Options) {
		s := openTest(t, o)
		r := rand.New(rand.NewPCG(1, 2))
		tables := []store.TableName{store.Rate, store.Spend}
		keys := make([]store.Key, 6)
		for i := range keys {
			keys[i] = testPartition.Key(fmt.Sprint("row", i))
		}
		for round := range 12 {
			for range 40 {
				name, k := tables[r.IntN(2)], keys[r.IntN(len(keys))]
				table, id := s.Table(name), store.In("open", fmt.Sprint("e", r.IntN(5)))
				var err error
				switch r.IntN(9) {
				case 0:
					err = table.Put(t.Context(), store.Row{Key: k, Item: store.Item{"n": int64(r.IntN(100)), "open": store.Map{}}, Expires: time.Now().Add(time.Hour)})
				case 1:
					err = table.Delete(t.Context(), k)
				case 2:
					u := bump(k)
					err = s.Transact(t.Context(), store.Action{Table: name, Update: &u}, store.Action{Table: store.Control, Put: &store.Put{Row: store.Row{Key: k}}})
				case 3:
					err = s.cache.flush()
				case 8:
					err = s.cache.rotate(true)
				case 4:
					_, _, err = table.Update(t.Context(), store.Update{Key: k, Remove: []store.Path{id, store.At("text")}, If: []store.Cond{store.IfHas(store.At("open"))}})
				case 5:
					_, _, err = table.Update(t.Context(), store.Update{Key: k, Set: []store.Assign{{Path: store.At("open"), Value: store.Map{"m": true}}, {Path: store.At("text"), Value: "t"}}, Expires: time.Now().Add(2 * time.Hour)})
				default:
					u := bump(k)
					if r.IntN(2) == 0 {
						u.Look = func(store.Item) {}
					}
					u.Set, u.If = []store.Assign{{Path: id, Value: []byte{1, byte(r.IntN(9))}}}, []store.Cond{store.IfHas(store.At("open"))}
					_, _, err = table.Update(t.Context(), u)
				}
				if _, refused := store.AsCondition(err); !refused {
					must(t, err)
				}
			}
			c := copyOpen(t, s)
			for _, name := range tables {
				want, err := s.Table(name).GetMany(t.Context(), keys)
				must(t, err)
				got, err := c.Table(name).GetMany(t.Context(), keys)
				must(t, err)
				if d := cmp.Diff(want, got, cmp.AllowUnexported(store.Key{})); d != "" {
					t.Fatalf("round %d, %s (-store +copy):\n%s", round, name, d)
				}
			}
		}
	})
}

// TestCutLogIsAPrefix damages the log within a record: everything before it is replayed.
func TestCutLogIsAPrefix(t *testing.T) {
	path := logPath(filepath.Join(t.TempDir(), "gateway.db"))
	l, err := createLog(path, 0, false)
	must(t, err)
	defer l.close(false)
	must(t, l.begin(7))
	must(t, l.append(appendFullRecord(nil, 1, cacheKey{3, left}, 0, store.Item{"n": int64(0)})))
	var ends []int
	for n := range int64(20) {
		u := bump(left)
		must(t, l.append(appendDeltaRecord(nil, 1, 0, &u, []int64{n + 1})))
		ends = append(ends, l.end)
	}
	log, err := os.ReadFile(path + "0")
	must(t, err)
	for n, end := range ends[:len(ends)-1] {
		cut := append([]byte(nil), log...)
		for i := end + 1 + rand.IntN(ends[n+1]-end-1); i < len(cut); i++ {
			cut[i] = byte(rand.Uint32())
		}
		seq, rows, err := readLog(cut)
		if err != nil || seq != 7 || len(rows) != 1 || rows[0].item.Int("n") != int64(n+1) {
			t.Errorf("cut after %d updates: sequence %d, rows %v, error %v", n+1, seq, rows, err)
		}
	}
}

// TestLogOfAnOlderSequenceIsNotReplayed covers a copy of the folder in which the log is
// older than the database.
func TestLogOfAnOlderSequenceIsNotReplayed(t *testing.T) {
	s := openTest(t, Options{NoMap: true})
	update := func() {
		_, _, err := s.Table(store.Spend).Update(t.Context(), bump(left))
		must(t, err)
	}
	update()
	name := fmt.Sprint(logPath(s.path), s.cache.seq%2)
	old, err := os.ReadFile(name)
	must(t, err)
	must(t, s.cache.flush())
	update()
	must(t, s.cache.flush())
	must(t, os.WriteFile(name, old, 0o600))
	c := copyOpen(t, s)
	if l, _ := counts(t, c); l != 2 {
		t.Errorf("the row is %d, want 2", l)
	}
}

// TestChangingRowsAreCarried rotates the logs under a row that changes continuously: the
// database gets it occasionally, and once it no longer changes. A kill at any moment loses
// nothing.
func TestChangingRowsAreCarried(t *testing.T) {
	logVariants(t, func(t *testing.T, o Options) {
		s := openTest(t, o)
		s.cache.done = make(chan struct{}) // no rotations but those of the test
		close(s.cache.done)
		inDatabase := func() int64 {
			c, err := s.reader(t.Context())
			must(t, err)
			defer s.release(c)
			item, _, _, err := c.get(tableIndex(store.Spend), left)
			must(t, err)
			return item.Int("n")
		}
		written, last := 0, int64(0)
		for n := range int64(3 * maxCarries) {
			_, _, err := s.Table(store.Spend).Update(t.Context(), bump(left))
			must(t, err)
			must(t, s.cache.rotate(true))
			if have := inDatabase(); have != last {
				last = have
				written++
			}
			if n-last >= maxCarries {
				t.Fatalf("after %d updates the database has %d", n+1, last)
			}
			if n%5 == 0 {
				if l, _ := counts(t, copyOpen(t, s)); l != n+1 {
					t.Fatalf("a copy has %d after %d updates", l, n+1)
				}
			}
		}
		if written < 2 || written > 6 {
			t.Errorf("the database got the row %d times in %d rotations", written, 3*maxCarries)
		}
		must(t, s.cache.rotate(true))
		if have := inDatabase(); have != 3*maxCarries {
			t.Errorf("the database has %d when the row rests, want %d", have, 3*maxCarries)
		}
	})
}

// TestQueriesWriteTheirPartitionOnly queries partitions with and without changed rows.
func TestQueriesWriteTheirPartitionOnly(t *testing.T) {
	s := openTest(t, Options{})
	s.cache.done = make(chan struct{}) // no rotations but those of the test
	close(s.cache.done)
	table, other := s.Table(store.Spend), store.Scope{Org: "o2"}.Partition("X")
	for n := range int64(3) {
		for _, k := range []store.Key{left, other.Key("k")} {
			_, _, err := table.Update(t.Context(), bump(k))
			must(t, err)
		}
		for _, p := range []store.Partition{store.System("NONE"), other} {
			before := s.cache.round
			page, err := table.Query(t.Context(), store.Query{Partition: p})
			must(t, err)
			if p == other && (len(page.Rows) != 1 || page.Rows[0].Item.Int("n") != n+1) {
				t.Fatalf("the partition has %v after %d updates", page.Rows, n+1)
			}
			if wrote := s.cache.round != before; wrote != (p == other) {
				t.Errorf("a query of %s wrote rows: %t", p, wrote)
			}
		}
	}
}

// TestFailedFlushLosesNothing lets the database reject writes for a while.
func TestFailedFlushLosesNothing(t *testing.T) {
	s := openTest(t, Options{})
	_, _, err := s.Table(store.Rate).Update(t.Context(), bump(left))
	must(t, err)
	must(t, s.cache.flush())
	c, err := open(s.path, false)
	must(t, err)
	defer c.close()
	must(t, c.once("PRAGMA busy_timeout = 5000"))
	must(t, c.once("CREATE TRIGGER refuse BEFORE INSERT ON rate BEGIN SELECT RAISE(FAIL, 'disk full'); END"))
	for range 3 {
		_, _, err := s.Table(store.Rate).Update(t.Context(), bump(left))
		must(t, err)
		if err := s.cache.flush(); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Fatalf("the flush's error is %v", err)
		}
	}
	if err := s.Table(store.Rate).Delete(t.Context(), right); err == nil {
		t.Error("a write passed the rows that the database lacks")
	}
	item, _, err := s.Table(store.Rate).Get(t.Context(), left, true)
	if err != nil || item.Int("n") != 4 {
		t.Errorf("the row is %v, %v", item, err)
	}
	must(t, c.once("DROP TRIGGER refuse"))
	must(t, s.cache.flush())
	copied := copyOpen(t, s)
	item, _, err = copied.Table(store.Rate).Get(t.Context(), left, true)
	if err != nil || item.Int("n") != 4 {
		t.Errorf("the copy has %v, %v", item, err)
	}
}

// TestBrokenLogFallsBackToTheDatabase closes the log's file under the store.
func TestBrokenLogFallsBackToTheDatabase(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "gateway.db"), Options{NoMap: true})
	must(t, err)
	for n := range int64(4) {
		if n == 2 {
			s.cache.mu.Lock()
			for _, l := range s.cache.logs {
				must(t, l.file.Close())
			}
			s.cache.mu.Unlock()
		}
		_, after, err := s.Table(store.Spend).Update(t.Context(), bump(left))
		must(t, err)
		if after.Int("n") != n+1 {
			t.Fatalf("the row is %v after %d updates", after, n+1)
		}
	}
	if !s.cache.off || len(s.cache.rows) > 0 {
		t.Errorf("off is %v, %d rows are in memory", s.cache.off, len(s.cache.rows))
	}
	if l, _ := counts(t, copyOpen(t, s)); l != 4 {
		t.Errorf("the copy has %d", l)
	}
	if err := s.Close(); err == nil {
		t.Error("closing the log twice is no error")
	}
}

func TestRowsLeaveMemoryUnderManyKeys(t *testing.T) {
	s := openTest(t, Options{})
	for i := range 2*maxCachedRows + 10 {
		_, _, err := s.Table(store.Rate).Update(t.Context(), bump(testPartition.Key(fmt.Sprint(i))))
		must(t, err)
		if i%512 == 0 {
			must(t, s.cache.flush())
		}
	}
	must(t, s.cache.flush())
	if n := len(s.cache.rows); n > maxCachedRows+1024 {
		t.Errorf("%d rows are in memory", n)
	}
	page, err := s.Table(store.Rate).Query(t.Context(), store.Query{Partition: testPartition, CountOnly: true})
	must(t, err)
	if page.Count != 2*maxCachedRows+10 {
		t.Errorf("%d rows are stored", page.Count)
	}
}

// TestConcurrentWritersOfOneRow mixes updates with operations that bypass the memory.
func TestConcurrentWritersOfOneRow(t *testing.T) {
	s := openTest(t, Options{})
	const writers, each = 8, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				var err error
				switch {
				case i%20 == w:
					u := bump(left)
					err = s.Transact(context.Background(), store.Action{Table: store.Spend, Update: &u})
				case i%50 == w:
					err = errors.Join(s.cache.flush(), func() error {
						_, _, err := s.Table(store.Spend).Update(context.Background(), bump(left))
						return err
					}())
				default:
					u, seen := bump(left), int64(0)
					u.Look = func(after store.Item) { seen = after.Int("n") }
					if _, _, err = s.Table(store.Spend).Update(context.Background(), u); seen == 0 {
						t.Error("the update did not show the row")
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if l, _ := counts(t, copyOpen(t, s)); l != writers*each {
		t.Errorf("the row counts %d, want %d", l, writers*each)
	}
}

// countInMemory counts in the file by updates until it is killed and prints each count that
// was acknowledged.
func countInMemory(path string) error {
	s, err := Open(path, Options{NoMap: os.Getenv("STORE_TEST_NOMAP") != ""})
	if err != nil {
		return err
	}
	for {
		_, after, err := s.Table(store.Spend).Update(context.Background(), bump(left))
		if err == nil && after.Int("n")%125 == 60 {
			err = s.cache.rotate(after.Int("n")%500 != 60)
		}
		if err != nil {
			return err
		}
		fmt.Println(after.Int("n"))
	}
}

func TestKilledProcessLosesNoUpdate(t *testing.T) {
	logVariants(t, func(t *testing.T, o Options) {
		path := filepath.Join(t.TempDir(), "gateway.db")
		stored := int64(0)
		for i := range 5 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "STORE_TEST_CHILD="+path, "STORE_TEST_COUNT=1")
			if o.NoMap {
				cmd.Env = append(cmd.Env, "STORE_TEST_NOMAP=1")
			}
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			lines, last := bufio.NewScanner(out), int64(0)
			for n := 0; lines.Scan(); n++ {
				if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
					t.Fatalf("the child printed %q", lines.Text())
				}
				if n == 100+333*i {
					must(t, cmd.Process.Kill())
				}
			}
			_ = cmd.Wait() // killed
			s, err := Open(path, Options{})
			must(t, err)
			l, _ := counts(t, s)
			must(t, s.Close())
			if l < last || l > last+1 || last <= stored {
				t.Fatalf("kill %d: %d is stored, %d was acknowledged, %d before", i, l, last, stored)
			}
			stored = l
		}
	})
}
