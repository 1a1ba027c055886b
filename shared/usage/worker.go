package usage

import (
	"context"
	"errors"
	"time"
)

// Ingester keeps records for good; the same record may come again.
type Ingester interface {
	Ingest(ctx context.Context, records []Record) error
}

// Settler settles one budget reservation; settling again changes nothing. The
// worker repeats what the request did, for requests that died before they
// could.
type Settler interface {
	SettleEntry(ctx context.Context, e Settle) error
}

// Worker moves records from a source to where they are kept.
type Worker struct {
	Source   Source
	Ingester Ingester
	Settler  Settler // nil: nothing is settled
	// Kept hears of records that are kept and settled; what it does cannot fail them.
	// The records are its own until it returns. May be nil.
	Kept func(ctx context.Context, records []Record)

	MaxRecords int           // of a batch; 1,000 when 0
	MaxDelay   time.Duration // from the first record of a batch to its ingestion; 1 s when 0
	DrainTime  time.Duration // for what is left when Run is asked to stop; 25 s when 0
	OnError    func(error)   // hears of every failed try; may be nil
}

// Pauses between tries of a batch that failed.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 10 * time.Second
)

// Run works until ctx is done, then on what is left in the source until it is
// empty or DrainTime is over. A batch that fails is tried again until it
// succeeds; nothing is acknowledged before. The error says why something was
// left behind; nil when nothing was.
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
	// The drain's clock starts when ctx ends, also for a batch in work then.
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

// work tries one batch until it is done or late is over.
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
			return errors.Join(errors.New("usage: stopped before the last batch was kept"), err)
		}
		if ctx.Err() != nil {
			pause = min(pause, time.Second)
		}
		sleep(late, pause)
	}
}

// Process keeps, settles and acknowledges one batch. A function that is handed
// its batch by the platform calls it directly.
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
	if w.Kept != nil {
		w.Kept(ctx, b.Records)
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
