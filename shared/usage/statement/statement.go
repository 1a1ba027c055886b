// Package statement parses providers' exports of usage and of invoices into lines of one
// form, for comparison with the gateway's records.
package statement

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// Counts are the numbers of one side for a period and a model. A nil field is unknown.
type Counts struct {
	Requests *int64               // number of calls
	Input    *int64               // input tokens, including cached ones
	Cached   *int64               // of Input: read from the cache
	Output   *int64               // output tokens
	Cost     *pricing.NanoDollars // as on the bill
}

// Line is one line of an export.
type Line struct {
	Start, End time.Time // of the period; End is after it
	Model      string    // the provider's name of it; "" for all models together
	Counts
}

// Formats are the exports that can be read, with the functions that read them.
var formats = map[string]func([]byte) ([]Line, error){
	"openai": openAI, "anthropic": anthropic, "aws": awsReport, "csv": plainCSV,
}

// Formats lists the names of formats.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// maxLines limits the lines of one export.
const maxLines = 10_000

// MaxSpan limits the time between the first and the last line.
const MaxSpan = 92 * 24 * time.Hour

// Read reads an export. It adds up lines of the same period and model, and orders them by
// time, then by model. Errors are faults (400).
func Read(format string, raw []byte) ([]Line, error) {
	read := formats[format]
	if read == nil {
		return nil, fault.Invalid("format", "must be one of %v", Formats())
	}
	lines, err := read(raw)
	switch {
	case err != nil:
		return nil, fault.Invalid("export", "is not an export of this format: %s", err)
	case len(lines) == 0:
		return nil, fault.Invalid("export", "has no lines")
	case len(lines) > maxLines:
		return nil, fault.Invalid("export", "must have at most %d lines", maxLines)
	}
	first, last := lines[0].Start, lines[0].End
	for i := range lines {
		l := &lines[i]
		if !l.Start.Before(l.End) {
			return nil, fault.Invalid("export", "has a period that ends before it begins: %s", l.Start.Format(time.RFC3339))
		}
		if first.After(l.Start) {
			first = l.Start
		}
		if last.Before(l.End) {
			last = l.End
		}
	}
	if last.Sub(first) > MaxSpan {
		return nil, fault.Invalid("export", "must cover at most %d days", MaxSpan/(24*time.Hour))
	}
	return merge(lines), nil
}

func merge(lines []Line) []Line {
	type place struct {
		start, end int64
		model      string
	}
	at := map[place]int{}
	var out []Line
	for _, l := range lines {
		p := place{l.Start.UnixNano(), l.End.UnixNano(), l.Model}
		n, there := at[p]
		if !there {
			at[p], out = len(out), append(out, l)
			continue
		}
		out[n].add(&l.Counts)
	}
	slices.SortStableFunc(out, func(a, b Line) int {
		if c := a.Start.Compare(b.Start); c != 0 {
			return c
		}
		return slices.Compare([]string{a.Model}, []string{b.Model})
	})
	return out
}

// add adds the known numbers of v.
func (c *Counts) add(v *Counts) {
	plus(&c.Requests, v.Requests)
	plus(&c.Input, v.Input)
	plus(&c.Cached, v.Cached)
	plus(&c.Output, v.Output)
	plus(&c.Cost, v.Cost)
}

func plus[N ~int64](to **N, v *N) {
	switch {
	case v == nil:
	case *to == nil:
		n := *v
		*to = &n
	default:
		**to += *v
	}
}

// maxCount limits a number in an export, so that sums do not overflow.
const maxCount = 1e14

// checked converts a count, which must be an integer.
func checked(name string, n float64) (int64, error) {
	if !(n >= 0 && n <= maxCount) || n != math.Trunc(n) {
		return 0, fmt.Errorf("%s must be a whole number from 0 to 10^14", name)
	}
	return int64(n), nil
}

// Exports of the usage APIs of OpenAI and Anthropic: pages of buckets of results.

type page[B any] struct {
	Data []B  `json:"data"`
	More bool `json:"has_more"`
}

var errMore = errors.New("it has further pages (has_more): join their data first")

type openAIBucket struct {
	Start   int64 `json:"start_time"`
	End     int64 `json:"end_time"`
	Results []struct {
		Model    *string `json:"model"`
		Input    *int64  `json:"input_tokens"`
		Cached   *int64  `json:"input_cached_tokens"`
		Output   *int64  `json:"output_tokens"`
		Requests *int64  `json:"num_model_requests"`
		Amount   *struct {
			Value    json.Number `json:"value"`
			Currency string      `json:"currency"`
		} `json:"amount"`
	} `json:"results"`
}

func openAI(raw []byte) (lines []Line, err error) {
	var p page[openAIBucket]
	if err := read(raw, &p); err != nil {
		return nil, err
	}
	if p.More {
		return nil, errMore
	}
	for _, b := range p.Data {
		for _, r := range b.Results {
			l := Line{Start: time.Unix(b.Start, 0).UTC(), End: time.Unix(b.End, 0).UTC(), Counts: Counts{Requests: r.Requests, Input: r.Input, Cached: r.Cached, Output: r.Output}}
			if r.Model != nil {
				l.Model = *r.Model
			}
			if r.Amount != nil {
				if l.Cost, err = dollars(string(r.Amount.Value), r.Amount.Currency, 1); err != nil {
					return nil, err
				}
			}
			if err := l.validate(); err != nil {
				return nil, err
			}
			lines = append(lines, l)
		}
	}
	return lines, nil
}

type anthropicBucket struct {
	Start   time.Time `json:"starting_at"`
	End     time.Time `json:"ending_at"`
	Results []struct {
		Model    *string `json:"model"`
		Uncached *int64  `json:"uncached_input_tokens"`
		Read     *int64  `json:"cache_read_input_tokens"`
		Creation *struct {
			Short int64 `json:"ephemeral_5m_input_tokens"`
			Long  int64 `json:"ephemeral_1h_input_tokens"`
		} `json:"cache_creation"`
		Output   *int64  `json:"output_tokens"`
		Amount   *string `json:"amount"` // cents
		Currency string  `json:"currency"`
	} `json:"results"`
}

func anthropic(raw []byte) (lines []Line, err error) {
	var p page[anthropicBucket]
	if err := read(raw, &p); err != nil {
		return nil, err
	}
	if p.More {
		return nil, errMore
	}
	for _, b := range p.Data {
		for _, r := range b.Results {
			l := Line{Start: b.Start.UTC(), End: b.End.UTC(), Counts: Counts{Cached: r.Read, Output: r.Output}}
			if r.Model != nil {
				l.Model = *r.Model
			}
			if err := (&Counts{Input: r.Uncached, Cached: r.Read}).validate(); err != nil {
				return nil, err
			}
			plus(&l.Input, r.Uncached)
			plus(&l.Input, r.Read)
			if c := r.Creation; c != nil {
				if err := (&Counts{Input: &c.Short, Output: &c.Long}).validate(); err != nil {
					return nil, err
				}
				plus(&l.Input, &c.Short)
				plus(&l.Input, &c.Long)
			}
			if r.Amount != nil {
				if l.Cost, err = dollars(*r.Amount, r.Currency, 100); err != nil {
					return nil, err
				}
			}
			if err := l.validate(); err != nil {
				return nil, err
			}
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// validate rejects counts that are negative or too large to add.
func (c *Counts) validate() error {
	for name, n := range map[string]*int64{"a count of requests": c.Requests, "a count of input tokens": c.Input, "a count of cached tokens": c.Cached, "a count of output tokens": c.Output} {
		if n != nil && (*n < 0 || *n > maxCount) {
			return fmt.Errorf("%s must be from 0 to 10^14", name)
		}
	}
	return nil
}

func read(raw []byte, into any) error {
	var mistyped *json.UnmarshalTypeError
	err := json.Unmarshal(raw, into)
	if errors.As(err, &mistyped) {
		return fmt.Errorf("%s must be %s", mistyped.Field, mistyped.Type)
	}
	if err != nil {
		return errors.New("it is not valid JSON")
	}
	return nil
}

// dollars parses an amount in units of which parts make a dollar.
func dollars(amount, currency string, parts float64) (*pricing.NanoDollars, error) {
	if currency != "usd" && currency != "USD" && currency != "" {
		return nil, errors.New("amounts must be in USD")
	}
	v, err := strconv.ParseFloat(amount, 64)
	if v /= parts; err != nil || !(v >= -1e9 && v <= 1e9) {
		return nil, errors.New("amounts must be numbers of dollars")
	}
	n := pricing.NanoDollars(v*1e9 + 0.5)
	if v < 0 { // a credit
		n = pricing.NanoDollars(v*1e9 - 0.5)
	}
	return &n, nil
}
