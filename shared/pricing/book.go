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
	now   func() *Book // see WithCurrent; nil: the book itself
}

// index has the lines of each provider.
type index struct {
	version   string
	seed      maphash.Seed
	providers map[string]*section
	over      map[string]map[string]*entry // of a PriceSheet; they take precedence over the lines
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

// findAlias looks a model up under other names with the same price: without its resource
// path (ARN, publishers/..., models/...), without Bedrock's region prefix, without version
// suffixes, and a fine-tuned model under its base. The names are tried from the least
// shortened one on; the first that the book has wins.
func (x *index) findAlias(provider, model string, o *Options) *entry {
	if short, ok := cutPath(model); ok {
		model = short
		if e := x.find(provider, model); e != nil {
			return e
		}
	}
	if tuned, ok := strings.CutPrefix(model, "ft:"); ok {
		return x.findTuned(provider, tuned, o)
	}
	if strings.HasPrefix(provider, "bedrock") {
		if region, bare, ok := cutRegion(model); ok {
			if o.Region == "" {
				o.Region = region
			}
			if e := x.findVersion(provider, model); e != nil {
				return e
			}
			if e := x.find(provider, bare); e != nil {
				return e
			}
			model = bare
		}
	}
	return x.findVersion(provider, model)
}

// findTuned resolves ft:base:organization:name:id. It looks among the prices of fine-tuned
// models first.
func (x *index) findTuned(provider, tuned string, o *Options) *entry {
	base, _, _ := strings.Cut(tuned, ":")
	for _, name := range [...]string{"ft:" + base, base + ".ft"} {
		if e := x.find(provider, name); e != nil {
			return e
		}
		if e := x.findVersion(provider, name); e != nil {
			return e
		}
	}
	if e := x.find(provider, base); e != nil {
		return e
	}
	return x.findVersion(provider, base)
}

// findVersion removes one version suffix after the other.
func (x *index) findVersion(provider, model string) *entry {
	for range 4 {
		short, ok := cutVersion(provider, model)
		if !ok {
			return nil
		}
		if e := x.find(provider, short); e != nil {
			return e
		}
		model = short
	}
	return nil
}

// cutPath removes the resource path of an id. At many hosts slashes are part of the id, so
// only known paths are removed.
func cutPath(model string) (string, bool) {
	for _, prefix := range [...]string{"arn:", "models/", "publishers/", "projects/", "foundation-model/", "inference-profile/"} {
		if strings.HasPrefix(model, prefix) {
			if i := strings.LastIndexByte(model, '/'); i >= 0 {
				return model[i+1:], true
			}
		}
	}
	return model, false
}

// regionPrefixes are the geographies of cross-region inference profiles.
var regionPrefixes = [...]string{"us", "eu", "apac", "ap", "au", "jp", "ca", "in", "sa", "me", "af", "us-gov", "global"}

func cutRegion(model string) (region, bare string, ok bool) {
	head, rest, found := strings.Cut(model, ".")
	if !found {
		return "", model, false
	}
	for _, p := range regionPrefixes {
		if p == head {
			return head, rest, true
		}
	}
	return "", model, false
}

// cutVersion removes the last version suffix: @20250929 or @latest, -latest, -2025-08-07,
// -20250807, and at Bedrock :0, :200k and -v1.
func cutVersion(provider, model string) (string, bool) {
	if i := strings.LastIndexByte(model, '@'); i > 0 {
		return model[:i], true
	}
	if short, ok := strings.CutSuffix(model, "-latest"); ok && short != "" {
		return short, true
	}
	if n := len(model) - len("-2025-08-07"); n > 0 && isDate(model[n:], true) {
		return model[:n], true
	}
	if n := len(model) - len("-20250807"); n > 0 && isDate(model[n:], false) {
		return model[:n], true
	}
	if !strings.HasPrefix(provider, "bedrock") {
		return model, false
	}
	if i := strings.LastIndexByte(model, ':'); i > 0 {
		return model[:i], true
	}
	if n := len(model) - len("-v1"); n > 0 && model[n:n+2] == "-v" && isDigit(model[n+2]) {
		return model[:n], true
	}
	return model, false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isDate reports whether s is -YYYYMMDD, or -YYYY-MM-DD when dashed.
func isDate(s string, dashed bool) bool {
	for i := range len(s) {
		if i == 0 || dashed && (i == 5 || i == 8) {
			if s[i] != '-' {
				return false
			}
		} else if !isDigit(s[i]) {
			return false
		}
	}
	return s[1] == '2' && s[2] == '0'
}
