// Package embedded builds the stores of one process in one folder. It holds a SQLite file
// of tables, a SQLite file of queues, files for blobs and for the usage journal, and a key
// file.
package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"gateway/shared/app"
	"gateway/shared/blob/files"
	"gateway/shared/queue"
	queuefile "gateway/shared/queue/local"
	"gateway/shared/seal"
	sealfile "gateway/shared/seal/local"
	"gateway/shared/store/sqlite"
	"gateway/shared/usage"
)

// maxAttempts is how often the worker tries an audit record before it is set aside.
const maxAttempts = 10

// Stores are the open stores of a folder.
type Stores struct {
	app.Backends
	Journal *usage.Journal

	tables *sqlite.Store
	queues *queuefile.File
}

// Options are the choices of stores.
type Options struct {
	Durable bool // every commit reaches the disk before it is acknowledged
	NoRing  bool // see usage.JournalOptions
}

// Open opens the stores of a folder and makes those that are missing. It rejects a folder
// that another process uses.
func Open(ctx context.Context, dir string, o Options) (*Stores, error) {
	s := &Stores{}
	if err := s.openTables(dir, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	var options []files.Option
	if o.Durable {
		options = append(options, files.Durable())
	}
	bucket, err := files.Open(filepath.Join(dir, "blobs"), options...)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	master, err := sealfile.Open(filepath.Join(dir, "master.key"))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.Journal, err = usage.OpenJournal(filepath.Join(dir, "journal"), usage.JournalOptions{Durable: o.Durable, NoRing: o.NoRing, Bucket: bucket}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	var audit queue.Queue = s.queues.Queue("audit", maxAttempts)
	s.Backends = app.Backends{Store: s.tables, Embedded: true, Bucket: bucket, Audit: audit, RunQueue: s.queues.Queue("batches", maxAttempts), Exports: s.queues.Queue("exports", maxAttempts), Sealer: seal.New(master, nil)}
	return s, nil
}

// openTables opens the files of tables and of queues at the same time: a new one waits for
// the disk several times.
func (s *Stores) openTables(dir string, o Options) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var late error
	var wg sync.WaitGroup
	wg.Go(func() {
		s.queues, late = queuefile.Open(filepath.Join(dir, "queues.db"), queuefile.Options{Durable: o.Durable})
	})
	var err error
	s.tables, err = sqlite.Open(filepath.Join(dir, "tables.db"), sqlite.Options{Durable: o.Durable, NoMap: o.NoRing})
	wg.Wait()
	if err != nil {
		return err // both report that another process has the folder; once is enough
	}
	return late
}

// Close closes the open stores.
func (s *Stores) Close() error {
	var errs []error
	if s.Journal != nil {
		errs = append(errs, s.Journal.Close())
	}
	if s.queues != nil {
		errs = append(errs, s.queues.Close())
	}
	if s.tables != nil {
		errs = append(errs, s.tables.Close())
	}
	return errors.Join(errs...)
}
