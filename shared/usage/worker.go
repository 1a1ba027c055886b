package usage

import (
	"context"
	"errors"
	"time"
)

// Ingester stores records permanently; the same record may be delivered again.
type Ingester interface {
	Ingest(ctx context.Context, records []Record) error
}

// Settler settles one budget reservation, idempotently. The worker repeats the settlement
// for requests with a process that died before it.
type Settler interface {
	SettleEntry(ctx context.Context, e Settle) error
}

// Worker moves records from a source to an Ingester.
type Worker struct {
	Source   Source
	Ingester Ingester
	Settler  Settler // if nil, nothing is settled
	// OnStored is called with records that are stored and settled; it cannot fail them.
	// It owns the records until it returns. May be nil.
	OnStored func(ctx context.Context, records []Record)

	MaxRecords int           // of a batch; 1,000 if zero
	MaxDelay   time.Duration // from the first record of a batch to its ingestion; 1 s if zero
	DrainTime  time.Duration // for the remaining records after Run is stopped; 25 s if zero
	OnError    func(error)   // called for every failed attempt; may be nil
}

// Delays between attempts of a failed batch.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 10 * time.Second
)

// Run works until ctx is done, then until the source is empty or DrainTime has passed. It
// retries a failed batch until it succeeds and acknowledges nothing before. The error
// states why records remain; nil if none do.
func (w *Worker) Run(ctx context.Context) error {
	max, delay, drain := w.MaxRecords, w.MaxDelay, w.DrainTime
	if max <= 0 {
		max = 1000
	}
	if delay <= 0 {
		delay = time.Second
	}
	if drain <= 0 {
		drain = 25 * time.Second
	}
	// The drain timeout starts when ctx ends, also for a batch that is being processed
	// then.
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(drain, cancel)
		context.AfterFunc(late, func() { timer.Stop() })
	})
	defer stop()

	pause := firstPause
	for ctx.Err() == nil {
		b, err := w.Source.Next(ctx, max, delay)
		if err != nil {
			if ctx.Err() == nil {
				w.report(err)
				sleep(ctx, pause)
				pause = min(2*pause, longPause)
			}
			continue
		}
		pause = firstPause
		if err := w.work(ctx, late, b); err != nil {
			return err
		}
	}
	for {
		b, err := w.Source.Next(late, max, 0)
		if err != nil {
			return err
		}
		if len(b.Records) == 0 {
			return nil
		}
		if err := w.work(ctx, late, b); err != nil {
			return err
		}
	}
}

// work retries one batch until it is done or late is done.
func (w *Worker) work(ctx, late context.Context, b Batch) error {
	if len(b.Records) == 0 {
		return nil
	}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := w.Process(late, b)
		if err == nil {
			return nil
		}
		w.report(err)
		if late.Err() != nil {
			return errors.Join(errors.New("usage: stopped before the last batch was stored"), err)
		}
		if ctx.Err() != nil {
			pause = min(pause, time.Second)
		}
		sleep(late, pause)
	}
}

// Process stores, settles and acknowledges one batch. A function that the platform
// invokes with a batch calls it directly.
func (w *Worker) Process(ctx context.Context, b Batch) error {
	if err := w.Ingester.Ingest(ctx, b.Records); err != nil {
		return err
	}
	if w.Settler != nil {
		for i := range b.Records {
			for _, e := range b.Records[i].SettleSubjects {
				if err := w.Settler.SettleEntry(ctx, e); err != nil {
					return err
				}
			}
		}
	}
	if w.OnStored != nil {
		w.OnStored(ctx, b.Records)
	}
	if b.Done == nil {
		return nil
	}
	return b.Done(ctx)
}

func (w *Worker) report(err error) {
	if w.OnError != nil {
		w.OnError(err)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
