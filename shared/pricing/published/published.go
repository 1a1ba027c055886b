// Package published updates the price list with a sheet of prices at an address (see
// pricing.PriceSheet), so that corrections need no deployment.
//
// The sheet is stored for an hour, for all processes of an installation. After that one of them
// fetches it again, concurrently with requests. Meanwhile, and as long as the address does not
// respond or returns no complete sheet, the old one applies. A process reads the store once a
// minute.
//
//	SYS#PRICES   BOOK   the sheet, when it was fetched, when it is due, and the last fault
package published

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/store"
)

// Times.
const (
	lookEvery  = time.Minute      // between looks into the store
	sheetTTL   = time.Hour        // how long a sheet is valid before it is fetched again
	retryAfter = 5 * time.Minute  // after the address failed
	lease      = time.Minute      // for the process that fetches
	fetchTime  = 30 * time.Second // for one fetch
	firstTime  = time.Second      // for the first look, which a request waits for
)

// maxRow bounds a packed sheet, in bytes.
const maxRow = 300 << 10

// Options specify where the sheet is.
type Options struct {
	URL       string
	Transport http.RoundTripper // the guarded way out
	Table     store.Table
	Base      *pricing.Book // the book below the sheet
	Now       func() time.Time
	// Fetch lets the process fetch concurrently with requests. A process that is frozen between
	// requests only reads the store, and another one fetches.
	Fetch bool
}

// Prices are the list with the present sheet. They are safe for concurrent use.
type Prices struct {
	o      Options
	first  sync.Once
	looked atomic.Int64 // unix nanoseconds of the last look
	book   atomic.Pointer[pricing.Book]
	mu     sync.Mutex // guards what follows, and every look
	sheet  *pricing.PriceSheet
	failed string // the last fault that was logged
}

// Open makes Prices; nothing is read yet.
func Open(o Options) *Prices {
	p := &Prices{o: o}
	p.book.Store(o.Base)
	return p
}

// Book is the list to price by: its Current includes the sheet.
func (p *Prices) Book() *pricing.Book { return p.o.Base.WithCurrent(p.current) }

// current gives the present book. The first call waits for the store, a second at most.
// Later calls start a look when it is time, and do not wait.
func (p *Prices) current() *pricing.Book {
	p.first.Do(func() {
		p.looked.Store(p.o.Now().UnixNano())
		ctx, cancel := context.WithTimeout(context.Background(), firstTime)
		defer cancel()
		due, err := p.Reload(ctx)
		if p.logFault(err); due && p.o.Fetch {
			go p.refresh()
		}
	})
	now, last := p.o.Now().UnixNano(), p.looked.Load()
	if now-last >= int64(lookEvery) && p.looked.CompareAndSwap(last, now) {
		go p.refresh()
	}
	return p.book.Load()
}

func (p *Prices) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime+lease/4)
	defer cancel()
	if !p.o.Fetch {
		_, err := p.Reload(ctx)
		p.logFault(err)
		return
	}
	p.logFault(p.Refresh(ctx))
}

// logFault logs a fault, once until it changes.
func (p *Prices) logFault(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if text != p.failed && text != "" {
		slog.Error("the published prices could not be read; the previous ones remain in use", "error", text)
	}
	p.failed = text
}

// row is the content of the store.
type row struct {
	there bool
	item  store.Item
}

func key() store.Key { return store.System("PRICES").Key("BOOK") }

// due reports whether the sheet must be fetched.
func (r *row) due(url string, now time.Time) bool {
	return !r.there || r.item.String("url") != url || now.UnixMilli() >= r.item.Int("due")
}

// Reload reads the sheet from the store; due reports that it is time to fetch it again.
func (p *Prices) Reload(ctx context.Context) (due bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, err := p.look(ctx)
	return err == nil && r.due(p.o.URL, p.o.Now()), err
}

func (p *Prices) look(ctx context.Context) (r row, err error) {
	if r.item, r.there, err = p.o.Table.Get(ctx, key(), true); err != nil {
		return r, fmt.Errorf("published prices: %w", err)
	}
	packed := r.item.Bytes("sheet")
	if len(packed) == 0 || p.sheet != nil && p.sheet.Version() == r.item.String("version") {
		return r, nil
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), pricing.MaxSheet+1))
	if err != nil {
		return r, errors.Join(errStoredSheet, err)
	}
	sheet, err := pricing.ParseSheet(text)
	if err != nil {
		return r, errors.Join(errStoredSheet, err)
	}
	p.take(sheet)
	return r, nil
}

// errStoredSheet is returned if the store has a sheet that this version cannot read.
var errStoredSheet = errors.New("published prices: the stored value is not a price sheet")

// take puts a sheet into force.
func (p *Prices) take(sheet *pricing.PriceSheet) {
	p.sheet = sheet
	p.book.Store(p.o.Base.WithSheet(sheet))
}

// Refresh looks into the store, and fetches the sheet if it is time and no other process is
// doing so. After an error the old sheet stays in force.
func (p *Prices) Refresh(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, err := p.look(ctx)
	if unread := errors.Is(err, errStoredSheet); !unread && (err != nil || !r.due(p.o.URL, p.o.Now())) {
		return err
	}
	if mine, err := p.write(ctx, &r, store.Item{"due": p.o.Now().Add(lease).UnixMilli()}); err != nil || !mine {
		return err
	}
	sheet, packed, wrong := p.fetch(ctx)
	next := store.Item{"due": p.o.Now().Add(retryAfter).UnixMilli()}
	if wrong != nil {
		next["fault"] = wrong.Error()
	} else {
		next = store.Item{"due": p.o.Now().Add(sheetTTL).UnixMilli(), "sheet": packed, "version": sheet.Version(), "fetched": p.o.Now().UnixMilli(), "fault": ""}
	}
	mine, err := p.write(ctx, &r, next)
	if err != nil || wrong != nil {
		return errors.Join(wrong, err)
	}
	if mine {
		p.take(sheet)
	}
	return nil
}

// write changes members of the row; mine is false when another process has changed it.
func (p *Prices) write(ctx context.Context, r *row, change store.Item) (mine bool, err error) {
	next := store.Item{"url": p.o.URL, "rev": r.item.Int("rev") + 1, "by": rand.Text()}
	for _, name := range []string{"sheet", "version", "fetched", "due", "fault"} {
		if v, ok := change[name]; ok {
			next[name] = v
		} else if v, ok := r.item[name]; ok {
			next[name] = v
		}
	}
	cond := store.IfAbsent()
	if r.there {
		cond = store.IfEqual(store.At("rev"), r.item.Int("rev"))
	}
	err = p.o.Table.Put(ctx, store.Row{Key: key(), Item: next}, cond)
	if there, lost := store.AsCondition(err); lost {
		// The condition also fails when this very write is repeated.
		same := there.Current.String("by") == next.String("by")
		r.item, r.there = next, true
		return same, nil
	}
	if err != nil {
		return false, fmt.Errorf("published prices: %w", err)
	}
	r.item, r.there = next, true
	return true, nil
}

// fetch reads the sheet at the address. It rejects a sheet that silently drops a model's price.
func (p *Prices) fetch(ctx context.Context) (*pricing.PriceSheet, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.o.URL, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("published prices: %w", err)
	}
	req.Header.Set("Accept", "text/plain")
	resp, err := p.o.Transport.RoundTrip(req)
	if err != nil {
		return nil, nil, fmt.Errorf("published prices: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("published prices: the address responded with status %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, pricing.MaxSheet+1))
	if err != nil {
		return nil, nil, fmt.Errorf("published prices: %w", err)
	}
	sheet, err := pricing.ParseSheet(text)
	if err != nil {
		return nil, nil, fmt.Errorf("published prices: %w", err)
	}
	if model, loses := p.sheet.LostModel(p.o.Base, sheet); loses {
		return nil, nil, fmt.Errorf("published prices: %s would lose its price; mark it as unpriced if that is intended", model)
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return nil, nil, fmt.Errorf("published prices: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return nil, nil, fmt.Errorf("published prices: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, nil, fmt.Errorf("published prices: %w", err)
	}
	if packed.Len() > maxRow {
		return nil, nil, fmt.Errorf("published prices: the sheet has %d bytes compressed, %d are allowed", packed.Len(), maxRow)
	}
	return sheet, packed.Bytes(), nil
}
