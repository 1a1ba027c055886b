package statement

import (
	"fmt"
	"maps"
	"math"
	"slices"
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
		return nil, fault.Invalid("export", "must be of at most %d days", MaxSpan/(24*time.Hour))
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
