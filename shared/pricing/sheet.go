package pricing

import (
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Bounds of a sheet.
const (
	MaxSheet      = 4 << 20 // bytes
	maxSheetLines = 20_000
	maxSheetLine  = 16 << 10 // bytes
)

// Sheet is a list of prices that replace those of the list for the same models, or are
// added to it. Its text is a first line, then lines in the format of data/prices.txt (see
// the package):
//
//	prices	<name>	<number of lines>
//	openai	gpt-4o	input=2.5 output=10
//
// The sheet's authors choose the name, such as a date. The number shows whether a sheet was
// cut short. Empty lines, and lines that begin with #, do not count.
type Sheet struct {
	version string
	entries map[string]map[string]*entry // by provider, then model
}

var (
	sheetName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
)

// ParseSheet parses a complete sheet; the error names the first invalid line.
func ParseSheet(text []byte) (*Sheet, error) {
	if len(text) > MaxSheet {
		return nil, fmt.Errorf("pricing: sheet: has %d bytes, %d are allowed", len(text), MaxSheet)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("pricing: sheet: is no UTF-8")
	}
	s := &Sheet{entries: make(map[string]map[string]*entry)}
	head, want, n, at := false, 0, 0, 0
	for line := range strings.Lines(string(text)) {
		line, at = strings.TrimRight(line, "\r\n"), at+1
		if line == "" || line[0] == '#' {
			continue
		}
		var err error
		if !head {
			head = true
			want, err = s.readHead(line, text)
		} else {
			n++
			err = s.read(line)
		}
		if err != nil {
			return nil, fmt.Errorf("pricing: sheet: line %d: %w", at, err)
		}
	}
	if !head {
		return nil, fmt.Errorf("pricing: sheet: is empty; it begins with prices, its name and the number of its lines, with tabs between")
	}
	if n != want {
		return nil, fmt.Errorf("pricing: sheet: has %d lines, its head says %d", n, want)
	}
	return s, nil
}

func (s *Sheet) readHead(line string, text []byte) (lines int, err error) {
	part := strings.Split(line, "\t")
	if len(part) != 3 || part[0] != "prices" || !sheetName.MatchString(part[1]) {
		return 0, fmt.Errorf("must be prices, a name of 1 to 64 of A-Z, a-z, 0-9, ., _ and -, and a number, with tabs between")
	}
	if lines, err = strconv.Atoi(part[2]); err != nil || lines < 0 || lines > maxSheetLines {
		return 0, fmt.Errorf("the number of lines must be 0 to %d", maxSheetLines)
	}
	s.version = fmt.Sprintf("%s-%08x", part[1], crc32.ChecksumIEEE(text))
	return lines, nil
}

func (s *Sheet) read(line string) error {
	if len(line) > maxSheetLine {
		return fmt.Errorf("has %d bytes, %d are allowed", len(line), maxSheetLine)
	}
	provider, rest, _ := strings.Cut(line, "\t")
	model, sections, ok := strings.Cut(rest, "\t")
	if !ok || model == "" || !providerName.MatchString(provider) || strings.ContainsFunc(model, unicode.IsSpace) {
		return fmt.Errorf("must be a provider, a model and prices, with tabs between")
	}
	if s.entries[provider][model] != nil {
		return fmt.Errorf("%s/%s stands here twice", provider, model)
	}
	e, err := parseEntry(provider+"/"+model, sections)
	if err != nil {
		return err
	}
	for _, v := range e.variants {
		if !slices.Contains([]string{Standard, Batch, Flex, Priority, Fast}, v.mode) {
			return fmt.Errorf("%s/%s: %q is no mode", provider, model, v.mode)
		}
	}
	if e.unpriced && !slices.Contains(strings.Fields(sections), "unpriced") {
		return fmt.Errorf("%s/%s has no price; a model that is to have none says unpriced", provider, model)
	}
	if s.entries[provider] == nil {
		s.entries[provider] = make(map[string]*entry)
	}
	s.entries[provider][model] = e
	return nil
}

// Version names the sheet: its name, and a checksum of all of it.
func (s *Sheet) Version() string { return s.version }

// Loses names a model that would lose its price if next replaced the sheet on top of a
// book, without saying so. Such a sheet has forgotten lines.
func (s *Sheet) Loses(b *Book, next *Sheet) (model string, loses bool) {
	if s == nil {
		return "", false
	}
	after := b.With(next)
	for provider, models := range s.entries {
		for name, e := range models {
			if e.unpriced || next.entries[provider][name] != nil {
				continue
			}
			if _, ok := after.Price(provider, name, Options{}); !ok && (!loses || provider+"/"+name < model) {
				model, loses = provider+"/"+name, true
			}
		}
	}
	return model, loses
}

// With is the book with a sheet on top; nil: without one.
func (b *Book) With(s *Sheet) *Book {
	if s == nil {
		return b
	}
	return &Book{index: sync.OnceValue(func() *index {
		under := b.index()
		return &index{version: under.version + "+" + s.version, seed: under.seed, providers: under.providers, over: s.entries}
	})}
}

// Following returns a book with the Current that now returns. Lookups in the book itself use b.
func (b *Book) Following(now func() *Book) *Book { return &Book{index: b.index, now: now} }

// Current is the book to use for one question or one request, so that prices of different
// times do not mix in it.
func (b *Book) Current() *Book {
	if b.now == nil {
		return b
	}
	return b.now()
}

// Origins of prices.
const (
	FromList         = "list"         // comes with the gateway
	FromSheet        = "published"    // comes from the address that the installation reads
	FromOrganisation = "organisation" // its own
	FromIntegration  = "integration"  // its own
)

// origins are all of them.
var origins = []string{FromList, FromSheet, FromOrganisation, FromIntegration}

// Origins lists the origins that prices can have.
func Origins() []string { return slices.Clone(origins) }

// origin returns the source of a price, by its line.
func (x *index) origin(line string) string {
	switch at, _, _ := strings.Cut(line, " "); at {
	case ownLine:
		return FromIntegration
	case organisationLine:
		return FromOrganisation
	default:
		if provider, model, _ := strings.Cut(at, "/"); x.over[provider][model] != nil {
			return FromSheet
		}
		return FromList
	}
}
