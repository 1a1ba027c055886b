package accounting

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/body"
	"gateway/shared/wire"
)

// BatchRows is the maximum usage of the rows of a batch for one model together.
type BatchRows struct {
	Model   string
	In, Out int64 // tokens
	Prompt  int64 // tokens of the largest row
	Assumed bool  // a row states no output limit
}

var rowModel = wire.NewKeySet("model")

// BatchSum sums up the rows of a batch by model.
type BatchSum struct {
	model  string
	window func(model string) int64
	rows   map[string]BatchRows
	err    error
}

// NewBatchSum returns the sum of no rows. Rows without a model count as the given one; window returns
// the context window of a model, for rows with hidden input.
func NewBatchSum(model string, window func(model string) int64) *BatchSum {
	return &BatchSum{model: model, window: window, rows: map[string]BatchRows{}}
}

// Add adds a row. It reports whether the rows have a bound so far.
func (s *BatchSum) Add(line []byte) bool {
	if s.err != nil {
		return false
	}
	row, err := batch.ParseRow(line)
	if err != nil {
		s.err = err
		return false
	}
	one, err := readRow(row, s.model, s.window)
	if err != nil {
		s.err = fault.Newf(fault.UnboundedRequest, "input_file_id", "row %q: %s", fault.Clip(row.CustomID, 100), fault.From(err).Message)
		return false
	}
	sum := s.rows[one.Model]
	s.rows[one.Model] = BatchRows{one.Model, sum.In + one.In, sum.Out + one.Out, max(sum.Prompt, one.In), sum.Assumed || one.Assumed}
	return true
}

// Fail makes the sum unbounded, because of an error.
func (s *BatchSum) Fail(err error) { s.err = cmp.Or(s.err, err) }

// BatchRows returns the sums, or the *fault.Fault of an unbounded row.
func (s *BatchSum) Rows() ([]BatchRows, error) {
	if s.err != nil {
		return nil, s.err
	}
	rows := slices.Collect(maps.Values(s.rows))
	sort.Slice(rows, func(i, j int) bool { return rows[i].Model < rows[j].Model })
	return rows, nil
}

func readRow(row batch.Row, model string, window func(model string) int64) (r BatchRows, err error) {
	r.Model = model
	var w wire.Walk
	if err := rowModel.Walk(row.Body, &w); err != nil {
		return r, err
	}
	if v := w.Spans[0]; v.Present(row.Body) {
		if r.Model, err = wire.ScanString(v.Of(row.Body), "model"); err != nil {
			return r, err
		}
		if rest, ok := strings.CutPrefix(r.Model, "@"); ok {
			_, r.Model, _ = strings.Cut(rest, "/")
		}
	}
	if r.In, err = InputBound(row.Body, nil, func() int64 { return window(r.Model) }); err != nil {
		return r, err
	}
	if row.URL != "/v1/embeddings" {
		r.Out, r.Assumed, err = body.OutputBound(row.Body)
	}
	return r, err
}

// InputBound returns the most input tokens that a body may be charged: a token has at least one byte,
// earlier turns that were seen have their recorded size, tools of the provider that state their
// size are read again with each further use, and other hidden input fills at most the model's
// window. If that is unknown (0), the error is a *fault.Fault that names the field.
func InputBound(body []byte, seen EarlierTurns, window func() int64) (int64, error) {
	in, hidden := int64(len(body)), FindHiddenInput(body, seen)
	in += hidden.Images*TokensOfImage + hidden.Turns
	if hidden.Uses > 0 {
		n := min(hidden.Uses, 1000)
		in = min(in, 1<<40)*(n+1) + min(hidden.Fetched, 1<<40)*(n*(n+1)/2)
	}
	if hidden.Field == "" {
		if hidden.Uses > 0 {
			if most := window(); most > 0 {
				in = max(int64(len(body)), min(in, most))
			}
		}
		return in, nil
	}
	most := window()
	if most == 0 {
		return in, Unbounded(hidden.Field)
	}
	return max(in, most), nil
}

// Unbounded returns the fault of a request with an unbounded cost because of a field.
func Unbounded(field string) *fault.Fault {
	return fault.Newf(fault.UnboundedRequest, field, "%s adds input that the gateway cannot measure, and a budget is in force: send the input itself, use a model whose context window is known, or have an admin allow such requests (budget_settings.unbounded: allow)", fault.Clip(field, 200))
}
