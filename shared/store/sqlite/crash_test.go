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
	"strconv"
	"strings"
	"sync"
	"testing"

	"gateway/shared/store"
)

// Two rows that each transaction of the child changes alike.
var left, right = testPartition.Key("left"), testPartition.Key("right")

// TestMain is the child process of the tests below when it is started as one.
func TestMain(m *testing.M) {
	if path := os.Getenv("STORE_TEST_CHILD"); path != "" {
		work := child
		if os.Getenv("STORE_TEST_COUNT") != "" {
			work = countInMemory
		}
		if err := work(path); err != nil {
			fmt.Println("error", err)
			os.Exit(3)
		}
		return
	}
	os.Exit(m.Run())
}

// child counts in the file from four goroutines until it is killed and prints
// each count that was acknowledged.
func child(path string) error {
	s, err := Open(path, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	var mu sync.Mutex
	errs := make(chan error)
	for range 4 {
		go func() {
			for {
				a, b := bump(left), bump(right)
				err := s.Transact(context.Background(), store.Action{Table: store.Spend, Update: &a},
					store.Action{Table: store.Spend, Update: &b})
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				fmt.Println("ok")
				mu.Unlock()
			}
		}()
	}
	return <-errs
}

func startChild(t *testing.T, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_TEST_CHILD="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// runChild lets a child work until it has been acknowledged some writes, kills
// it, and returns how many acknowledgements it printed in all.
func runChild(t *testing.T, path string, writes int) (acknowledged int64) {
	t.Helper()
	cmd, out := startChild(t, path)
	for out.Scan() {
		if out.Text() != "ok" {
			t.Fatalf("the child said %q", out.Text())
		}
		if acknowledged++; acknowledged == int64(writes) {
			must(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait() // killed
	return acknowledged
}

func counts(t *testing.T, s *Store) (l, r int64) {
	t.Helper()
	rows, err := s.Table(store.Spend).GetMany(t.Context(), []store.Key{left, right})
	must(t, err)
	return rows[left].Int("n"), rows[right].Int("n")
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	acknowledged := int64(0)
	for i := range 4 {
		acknowledged += runChild(t, path, 20+100*i)
		s, err := Open(path, Options{})
		must(t, err)
		l, r := counts(t, s)
		must(t, s.Close())
		// Each kill may leave four that were done but not yet acknowledged.
		if l != r || l < acknowledged || l > acknowledged+4*int64(i+1) {
			t.Fatalf("after kill %d the rows are %d and %d, %d were acknowledged", i, l, r, acknowledged)
		}
		acknowledged = l
	}
}

// A crash of the machine may lose the end of the write-ahead log.
func TestCutLogLosesWholeTransactionsOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gateway.db")
	acknowledged := runChild(t, path, 300)
	wal, err := os.ReadFile(path + "-wal")
	must(t, err)
	for i := range 8 {
		cut := filepath.Join(dir, strconv.Itoa(i)+".db")
		copyFile(t, path, cut)
		end := rand.IntN(len(wal))
		must(t, os.WriteFile(cut+"-wal", append(wal[:end:end], make([]byte, rand.IntN(5000))...), 0o600))
		s, err := Open(cut, Options{})
		must(t, err)
		l, r := counts(t, s)
		if l != r || l > acknowledged+4 {
			t.Errorf("cut at %d of %d bytes: the rows are %d and %d", end, len(wal), l, r)
		}
		_, _, err = s.Table(store.Spend).Update(t.Context(), bump(left))
		must(t, err)
		must(t, s.Close())
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, b, 0o600))
}

func TestASecondProcessIsRefused(t *testing.T) {
	s := openTest(t, Options{})
	cmd, out := startChild(t, s.path)
	out.Scan()
	message := out.Text()
	for out.Scan() {
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("the second process ended with %v", err)
	}
	for _, want := range []string{ErrInUse.Error(), s.path, fmt.Sprint("process ", os.Getpid())} {
		if !strings.Contains(message, want) {
			t.Errorf("the second process said %q, which does not hold %q", message, want)
		}
	}
	_, _, err = s.Table(store.Rate).Update(t.Context(), bump(left))
	must(t, err)
	must(t, s.Close())

	cmd, out = startChild(t, s.path) // the lock went with the store
	if !out.Scan() || out.Text() != "ok" {
		t.Errorf("the next process said %q", out.Text())
	}
	must(t, cmd.Process.Kill())
	for out.Scan() {
	}
	_ = cmd.Wait() // killed
}
