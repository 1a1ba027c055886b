package inputbound

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/managed"
	"gateway/shared/wire"
)

// Rows is what the rows of a batch for one model may use together.
type Rows struct {
	Model   string
	In, Out int64 // tokens
	Assumed bool  // a row states no bound of its output
}

var rowModel = wire.NewKeySet("model")

// ReadRows sums up the rows of a batch by model, those without a model under the given one.
// window returns the context window of a model, for rows with hidden input. The error is a
// *fault.Fault for rows that cannot be read or bounded.
func ReadRows(src io.Reader, model string, window func(model string) int64) ([]Rows, error) {
	lines, sums := managed.NewLines(src, 0, 0), map[string]Rows{}
	for {
		line, err := lines.Next()
		if err == io.EOF {
			return slices.SortedFunc(maps.Values(sums), func(a, b Rows) int { return cmp.Compare(a.Model, b.Model) }), nil
		}
		if err != nil {
			return nil, err
		}
		row, err := managed.ParseRow(line)
		if err != nil {
			return nil, err
		}
		one, err := readRow(row, model, window)
		if err != nil {
			return nil, fault.Newf(fault.UnboundedRequest, "input_file_id", "line %d: %s", lines.Number, fault.From(err).Message)
		}
		sum := sums[one.Model]
		sums[one.Model] = Rows{one.Model, sum.In + one.In, sum.Out + one.Out, sum.Assumed || one.Assumed}
	}
}

func readRow(row managed.Row, model string, window func(model string) int64) (r Rows, err error) {
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
	if r.In, err = Input(row.Body, func() int64 { return window(r.Model) }); err != nil {
		return r, err
	}
	if row.URL != "/v1/embeddings" {
		r.Out, r.Assumed, err = inbound.OutputBound(row.Body)
	}
	return r, err
}

// Input returns the most input tokens that a body may be billed: a token has at least one
// byte, and hidden input fills at most the model's window. If that is unknown (0), the error
// is a *fault.Fault that names the field.
func Input(body []byte, window func() int64) (int64, error) {
	in, hidden := int64(len(body)), Find(body)
	in += hidden.Images * TokensOfImage
	if hidden.Field == "" {
		return in, nil
	}
	most := window()
	if most == 0 {
		return in, Unbounded(hidden.Field)
	}
	return max(in, most), nil
}

// Unbounded is the fault of a request whose cost has no bound because of a field.
func Unbounded(field string) *fault.Fault {
	return fault.Newf(fault.UnboundedRequest, field, "%s refers to input that the gateway cannot measure, and a budget is in force: send the input itself, use a model whose context window is known, or have an admin allow such requests (budget_settings.unbounded: allow)", fault.Clip(field, 200))
}
