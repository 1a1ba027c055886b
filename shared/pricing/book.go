package pricing

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// packed is data/prices.txt as gzip: every function links it, and may have 20 MiB. A
// test holds the two together.
//
//go:embed data/prices.txt.gz
var packed []byte

// priceList unpacks the list, about 2 ms of CPU.
func priceList() string {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // it is part of the program
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Book is a price list that is looked up without locks: lines are found by a
// hash index and parsed when first asked for, so start-up costs nothing and a
// process pays only for the models it uses.
type Book struct {
	text  func() string
	index func() *index
}

type index struct {
	version string
	seed    maphash.Seed
	table   []uint16 // open addressing; 0: empty, else line+1
	lines   []line
}

type line struct {
	provider, model string
	sections        string
	parsed          atomic.Pointer[entry]
}

var defaultBook = newBook(priceList)

// Default is the book that comes with the gateway.
func Default() *Book { return defaultBook }

func newBook(text func() string) *Book {
	b := &Book{text: text}
	b.index = sync.OnceValue(b.build)
	return b
}

func (b *Book) build() *index {
	rest := b.text()
	sum := crc32.Checksum([]byte(rest), crc32.MakeTable(crc32.Castagnoli))
	x := &index{version: fmt.Sprintf("%s-%08x", listDate, sum), seed: maphash.MakeSeed(), lines: make([]line, strings.Count(rest, "\n"))}
	size := 8
	for size < 2*len(x.lines) {
		size *= 2
	}
	x.table = make([]uint16, size)
	for i := range x.lines {
		var row string
		row, rest, _ = strings.Cut(rest, "\n")
		l := &x.lines[i]
		l.provider, row, _ = strings.Cut(row, "\t")
		l.model, l.sections, _ = strings.Cut(row, "\t")
		at := x.hash(l.provider, l.model)
		for x.table[at] != 0 {
			at = (at + 1) & (size - 1)
		}
		x.table[at] = uint16(i + 1)
	}
	return x
}

func (x *index) hash(provider, model string) int {
	h := maphash.String(x.seed, provider)*31 + maphash.String(x.seed, model)
	return int(h & uint64(len(x.table)-1))
}

func (x *index) find(provider, model string) *entry {
	for at := x.hash(provider, model); ; at = (at + 1) & (len(x.table) - 1) {
		slot := x.table[at]
		if slot == 0 {
			return nil
		}
		l := &x.lines[slot-1]
		if l.model != model || l.provider != provider {
			continue
		}
		e := l.parsed.Load()
		if e == nil {
			var err error
			if e, err = parseEntry(l.provider+"/"+l.model, l.sections); err != nil {
				return nil // a test reads every line of the list
			}
			l.parsed.Store(e)
		}
		return e
	}
}

// Price finds a model's price. The id is looked up as it is, then without what
// does not change the price (see aliases); ok is false for a model without a
// price: that is not a price of zero.
func (b *Book) Price(provider, model string, o Options) (p Price, ok bool) {
	x := b.index()
	e := x.find(provider, model)
	if e == nil {
		e = x.findAlias(provider, model, &o)
	}
	if e == nil || e.unpriced {
		return p, false
	}
	r, sure := e.pick(&o)
	r.resolve(&p, &o)
	p.unsure = !sure
	if provider == "anthropic" && o.Region == regionUS {
		p.inUS()
	}
	return p, true
}

// listDate is the day of the list that data/prices.txt was made of.
const listDate = "2026-08-21"

// Version names the list: its day, and a sum over all of it.
func (b *Book) Version() string { return b.index().version }

// Models lists the models of a provider that the book has a line for, in order.
func (b *Book) Models(provider string) []string {
	var models []string
	for i := range b.index().lines {
		if l := &b.index().lines[i]; l.provider == provider {
			models = append(models, l.model)
		}
	}
	return models
}
