package pricing

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
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

// PriceSheet is a list of prices that replace those of the list for the same models, or are
// added to it. Its text is a first line, then lines in the format of data/prices.txt (see
// the package):
//
//	prices	<name>	<number of lines>
//	openai	gpt-4o	input=2.5 output=10
//
// The sheet's authors choose the name, such as a date. The number shows whether a sheet was
// cut short. Empty lines, and lines that begin with #, do not count.
type PriceSheet struct {
	version string
	entries map[string]map[string]*entry // by provider, then model
}

var (
	sheetName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
)

// ParseSheet parses a complete sheet; the error names the first invalid line.
func ParseSheet(text []byte) (*PriceSheet, error) {
	if len(text) > MaxSheet {
		return nil, fmt.Errorf("pricing: sheet: has %d bytes, %d are allowed", len(text), MaxSheet)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("pricing: sheet: is not UTF-8")
	}
	s := &PriceSheet{entries: make(map[string]map[string]*entry)}
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
		return nil, fmt.Errorf("pricing: sheet: is empty; it begins with prices, its name and the number of its lines, separated by tabs")
	}
	if n != want {
		return nil, fmt.Errorf("pricing: sheet: has %d lines, its header states %d", n, want)
	}
	return s, nil
}

func (s *PriceSheet) readHead(line string, text []byte) (lines int, err error) {
	part := strings.Split(line, "\t")
	if len(part) != 3 || part[0] != "prices" || !sheetName.MatchString(part[1]) {
		return 0, fmt.Errorf("must be prices, a name of 1 to 64 of A-Z, a-z, 0-9, ., _ and -, and a number, separated by tabs")
	}
	if lines, err = strconv.Atoi(part[2]); err != nil || lines < 0 || lines > maxSheetLines {
		return 0, fmt.Errorf("the number of lines must be 0 to %d", maxSheetLines)
	}
	s.version = fmt.Sprintf("%s-%08x", part[1], crc32.ChecksumIEEE(text))
	return lines, nil
}

func (s *PriceSheet) read(line string) error {
	if len(line) > maxSheetLine {
		return fmt.Errorf("has %d bytes, %d are allowed", len(line), maxSheetLine)
	}
	provider, rest, _ := strings.Cut(line, "\t")
	model, sections, ok := strings.Cut(rest, "\t")
	if !ok || model == "" || !providerName.MatchString(provider) || strings.ContainsFunc(model, unicode.IsSpace) {
		return fmt.Errorf("must be a provider, a model and prices, separated by tabs")
	}
	if s.entries[provider][model] != nil {
		return fmt.Errorf("%s/%s is listed twice", provider, model)
	}
	e, err := parseEntry(provider+"/"+model, sections)
	if err != nil {
		return err
	}
	for _, v := range e.variants {
		if !slices.Contains([]string{Standard, Batch, Flex, Priority, Fast}, v.mode) {
			return fmt.Errorf("%s/%s: %q is not a mode", provider, model, v.mode)
		}
	}
	if e.unpriced && !slices.Contains(strings.Fields(sections), "unpriced") {
		return fmt.Errorf("%s/%s has no price; write unpriced if that is intended", provider, model)
	}
	if s.entries[provider] == nil {
		s.entries[provider] = make(map[string]*entry)
	}
	s.entries[provider][model] = e
	return nil
}

// Version names the sheet: its name, and a checksum of all of it.
func (s *PriceSheet) Version() string { return s.version }

// LostModel names a model that would lose its price if next replaced the sheet on top of a
// book, without saying so. Such a sheet has lost lines.
func (s *PriceSheet) LostModel(b *Book, next *PriceSheet) (model string, loses bool) {
	if s == nil {
		return "", false
	}
	after := b.WithSheet(next)
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

// WithSheet is the book with a sheet on top; nil: without one.
func (b *Book) WithSheet(s *PriceSheet) *Book {
	if s == nil {
		return b
	}
	return &Book{index: sync.OnceValue(func() *index {
		under := b.index()
		return &index{version: under.version + "+" + s.version, seed: under.seed, providers: under.providers, over: s.entries}
	})}
}

// WithCurrent returns a book with the Current that now returns. Lookups in the book itself use b.
func (b *Book) WithCurrent(now func() *Book) *Book { return &Book{index: b.index, now: now} }

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

// wireNames are the names of classes in documents of prices. Other classes are below
// additional_units under their own names.
var wireNames = map[Class]string{
	Input: "request_token", Output: "response_token", CacheRead: "cache_read_input_token", CacheWrite5m: "cache_write_input_token", AudioIn: "request_audio_token",
	AudioOut: "response_audio_token", AudioCacheRead: "cache_read_audio_input_token", Reasoning: "reasoning_token", ImageIn: "request_image_token", ImageOut: "response_image_token",
	ImageCacheRead: "cache_read_image_input_token",
}

var unitNames = map[Class]string{
	CacheWrite30m: "cache_write_30m", CacheWrite1h: "cache_write_1h", CacheWrite12h: "cache_write_12h", WebSearches: "web_search", FileSearches: "file_search", EnterpriseSearches: "enterprise_web_search", MapSearches: "maps", XSearches: "x_search",
	CodeExecutions: "code_execution", AttachmentSearches: "attachment_search", RoutingUnits: "routing_units", InputImages: "input_image", Megapixels: "megapixels", VideoOut: "output_video_token",
	Seconds: "video_seconds", Images: "generated_images", Pages: "search",
}

// Tagged is a price in a document: per unit, in US cents and in US dollars.
type Tagged struct {
	Price json.Number `json:"price"`
	USD   json.Number `json:"price_usd"`
}

// tagged returns a price in femto-dollars as documents show it, exactly.
func tagged(femtos int64) Tagged {
	return Tagged{decimal(femtos, centsPlaces), decimal(femtos, femtoPlaces)}
}

// Document is a model's price in the form that is shown to others.
type Document struct {
	PayAsYouGo map[string]any    `json:"pay_as_you_go"`
	Batch      map[string]Tagged `json:"batch_config,omitempty"`
	Currency   string            `json:"currency"`
	PriceUnit  string            `json:"price_unit"`
	// For a price that applies to a caller: the line that it comes from (see Price.Line) and
	// the version of the list, as records of requests name them.
	Tariff string `json:"tariff,omitempty"`
	Book   string `json:"book,omitempty"`
	Source string `json:"source,omitempty"` // one of Origins
}

// Document shows the price of a model; ok is false if it has none.
func (b *Book) Document(provider, model string) (d Document, ok bool) {
	d, ok = b.Describe(Options{}, func(o Options) (Price, bool) { return b.Price(provider, model, o) })
	d.Tariff, d.Book, d.Source = "", "", ""
	return d, ok
}

// Describe returns the document of a price under the options and, if they name no mode, also in
// batches.
func (b *Book) Describe(o Options, find func(Options) (Price, bool)) (d Document, ok bool) {
	p, ok := find(o)
	if !ok {
		return d, false
	}
	d = Document{PayAsYouGo: map[string]any{}, Currency: "USD", PriceUnit: PriceUnit, Tariff: p.line, Book: b.Version(), Source: b.index().origin(p.line)}
	units := map[string]Tagged{}
	for set := p.has; set != 0; set &= set - 1 {
		c := Class(bits.TrailingZeros64(set))
		at := tagged(p.rate[c])
		if name, plain := wireNames[c]; plain {
			d.PayAsYouGo[name] = at
		} else if name, known := unitNames[c]; known {
			units[name] = at
		} else {
			units[c.String()] = at
		}
	}
	if p.byMinute {
		units["minute"] = tagged(p.minute)
	}
	if len(units) > 0 {
		d.PayAsYouGo["additional_units"] = units
	}
	if o.Mode != "" {
		return d, true
	}
	o.Mode = Batch
	if batch, ok := find(o); ok {
		d.Batch = batch.unlike(&p)
	}
	return d, true
}

// unlike are the rates that differ from those of another price.
func (p *Price) unlike(other *Price) (out map[string]Tagged) {
	for set := p.has; set != 0; set &= set - 1 {
		c := Class(bits.TrailingZeros64(set))
		if name, plain := wireNames[c]; plain && p.rate[c] != other.rate[c] {
			if out == nil {
				out = map[string]Tagged{}
			}
			out[name] = tagged(p.rate[c])
		}
	}
	return out
}

// CostUnit and PriceUnit name the units of costs and prices in responses, which are cents for
// historical reasons. Answers give each amount in US dollars as well; see NanoDollars.USD.
const (
	CostUnit  = "cents"
	PriceUnit = "cents_per_token"
)

// Decimal places of amounts: a dollar is 10^9 nano-dollars and 10^15 femto-dollars.
const (
	nanoPlaces  = 9
	femtoPlaces = 15
	centsPlaces = femtoPlaces - 2
)

// USD returns the amount in US dollars as an exact decimal number.
func (n NanoDollars) USD() json.Number { return decimal(int64(n), nanoPlaces) }

// Add returns the sum of two amounts, none of which is negative. It saturates at the largest
// amount.
func (n NanoDollars) Add(m NanoDollars) NanoDollars { return n + min(m, math.MaxInt64-n) }

// decimal returns n * 10^-places as the shortest decimal number that equals it.
func decimal(n int64, places int) json.Number {
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	s := strconv.FormatUint(u, 10)
	if len(s) <= places {
		s = strings.Repeat("0", places+1-len(s)) + s
	}
	whole, part := s[:len(s)-places], strings.TrimRight(s[len(s)-places:], "0")
	if part != "" {
		part = "." + part
	}
	return json.Number(sign + whole + part)
}
