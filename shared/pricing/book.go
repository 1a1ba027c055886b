package pricing

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"errors"
	"hash/maphash"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// packed is data/prices.txt, packed: every function links it, and may have 20 MiB. A
// test holds the two together, and writes it with -update (see pack).
//
//go:embed data/prices.packed
var packed []byte

// Book is a price list with lookups that take no locks. Unused parts cost nothing: a provider's
// lines are unpacked when its first price is requested, found by a hash index, and parsed one
// by one.
type Book struct {
	index func() *index
	now   func() *Book // see Following; nil: the book itself
}

// index has the lines of each provider.
type index struct {
	version   string
	seed      maphash.Seed
	providers map[string]*section
	over      map[string]map[string]*entry // of a Sheet; they take precedence over the lines
}

// section is the part of the book for one provider.
type section struct {
	packed []byte // rows without the provider, deflated
	size   int    // their size unpacked
	open   sync.Once
	table  []uint16 // open addressing; 0: empty, else line+1
	lines  []line
}

type line struct {
	model    string
	sections string
	parsed   atomic.Pointer[entry]
}

var defaultBook = newBook(packed)

// Default is the book that comes with the gateway.
func Default() *Book { return defaultBook }

func newBook(packed []byte) *Book {
	return &Book{index: sync.OnceValue(func() *index { return readIndex(packed) })}
}

// readIndex reads the beginning of a packed list: a line with a checksum of the list, one line
// for each provider with its name and the size of its rows, packed and unpacked, and an empty
// line. The packed rows follow in the same order.
func readIndex(packed []byte) *index {
	head, rest, _ := bytes.Cut(packed, []byte("\n\n"))
	sum, providers, _ := strings.Cut(string(head), "\n")
	x := &index{version: listDate + "-" + sum, seed: maphash.MakeSeed(), providers: make(map[string]*section)}
	for row := range strings.SplitSeq(providers, "\n") {
		part := strings.Fields(row)
		n, err := strconv.Atoi(part[1])
		size, err2 := strconv.Atoi(part[2])
		if err = errors.Join(err, err2); err != nil {
			panic(err) // cannot happen: it is part of the program
		}
		x.providers[part[0]] = &section{packed: rest[:n], size: size}
		rest = rest[n:]
	}
	return x
}

// of gives the section of a provider, unpacked; nil: the list does not have the provider.
func (x *index) of(provider string) *section {
	s := x.providers[provider]
	if s != nil {
		s.open.Do(func() { s.unpack(x.seed) })
	}
	return s
}

// rows unpacks the rows.
func (s *section) rows() string {
	var text strings.Builder
	text.Grow(s.size)
	if _, err := io.Copy(&text, flate.NewReader(bytes.NewReader(s.packed))); err != nil {
		panic(err) // cannot happen: it is part of the program
	}
	return text.String()
}

func (s *section) unpack(seed maphash.Seed) {
	rest := s.rows()
	s.lines = make([]line, strings.Count(rest, "\n"))
	size := 8
	for size < 2*len(s.lines) {
		size *= 2
	}
	s.table = make([]uint16, size)
	for i := range s.lines {
		var row string
		row, rest, _ = strings.Cut(rest, "\n")
		l := &s.lines[i]
		l.model, l.sections, _ = strings.Cut(row, "\t")
		at := s.hash(seed, l.model)
		for s.table[at] != 0 {
			at = (at + 1) & (size - 1)
		}
		s.table[at] = uint16(i + 1)
	}
}

func (s *section) hash(seed maphash.Seed, model string) int {
	return int(maphash.String(seed, model) & uint64(len(s.table)-1))
}

func (x *index) find(provider, model string) *entry {
	if e := x.over[provider][model]; e != nil {
		return e
	}
	s := x.of(provider)
	if s == nil {
		return nil
	}
	for at := s.hash(x.seed, model); ; at = (at + 1) & (len(s.table) - 1) {
		slot := s.table[at]
		if slot == 0 {
			return nil
		}
		l := &s.lines[slot-1]
		if l.model != model {
			continue
		}
		e := l.parsed.Load()
		if e == nil {
			var err error
			if e, err = parseEntry(provider+"/"+l.model, l.sections); err != nil {
				return nil // a test reads every line of the list
			}
			l.parsed.Store(e)
		}
		return e
	}
}

// Price finds a model's price. The id is looked up as it is, then without the parts that do
// not change the price (see aliases). ok is false for a model without a price, which is not
// the same as a price of zero.
func (b *Book) Price(provider, model string, o Options) (p Price, ok bool) {
	x := b.index()
	e := x.find(provider, model)
	if e == nil {
		e = x.findAlias(provider, model, &o)
	}
	if e == nil || e.unpriced {
		return p, false
	}
	r, above, sure := e.pick(&o)
	r.resolve(&p, &o)
	p.above, p.unsure = above, !sure
	if provider == "anthropic" && o.Region == regionUS {
		p.inUS()
	}
	return p, true
}

// listDate is the date of the data in data/prices.txt.
const listDate = "2026-11-29"

// Version names the list: its date, and a checksum of all of it.
func (b *Book) Version() string { return b.index().version }

// Models lists the models of a provider that the book has a line for, in order.
func (b *Book) Models(provider string) []string {
	x := b.index()
	s, over := x.of(provider), x.over[provider]
	if s == nil && len(over) == 0 {
		return nil
	}
	models := make([]string, 0, len(over))
	if s != nil {
		models = slices.Grow(models, len(s.lines))
		for i := range s.lines {
			models = append(models, s.lines[i].model)
		}
	}
	if len(over) == 0 {
		return models
	}
	for model := range over {
		models = append(models, model)
	}
	slices.Sort(models)
	return slices.Compact(models)
}
