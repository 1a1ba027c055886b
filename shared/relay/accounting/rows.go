package accounting

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/provider/modelmeta"
	"gateway/shared/relay/approval"
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

// Rows returns the sums, or the *fault.Fault of an unbounded row.
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
	return fault.Newf(fault.UnboundedRequest, field, "%s adds input that the gateway cannot measure, and a budget applies: send the input itself, use a model whose context window is known, or have an admin allow such requests (budget_settings.unbounded: allow)", fault.Clip(field, 200))
}

// TokensOfImage is the most tokens that an image is billed: 2,833 and 5,667 for each of eight
// tiles, the rate of gpt-4o-mini (platform.openai.com, Images and vision).
const TokensOfImage = 2833 + 8*5667

// HiddenInput is input that a body refers to and does not contain.
type HiddenInput struct {
	Images int64  // fetched by the provider; each has at most TokensOfImage
	Turns  int64  // tokens of earlier turns with known usage
	Field  string // of the first reference to input of any length; "" if there is none
	// Uses and Fetched are how often tools of the provider may add to the input, and the most
	// tokens that each of these uses adds.
	Uses, Fetched int64
}

// FindHiddenInput returns the hidden input of a JSON body. Bodies that are not JSON have none. seen returns
// the size of earlier turns by id, if known.
func FindHiddenInput(body []byte, seen EarlierTurns) (h HiddenInput) {
	may := reference.Mentioned(body)
	if may&reference.Stored != 0 {
		h.Field = reference.FindStored(body, func(id string) bool { return seen.add(id, &h.Turns) })
	}
	if may&reference.Tools != 0 {
		for _, t := range reference.FindHosted(body) {
			switch {
			case strings.HasPrefix(t.Label, approval.LabelPrefix): // the gateway runs it
			case t.Uses > 0 && h.Uses < 1000:
				h.Uses, h.Fetched = h.Uses+t.Uses, max(h.Fetched, t.Tokens)
			case h.Field == "":
				h.Field = t.Field
			}
		}
	}
	if may&reference.Objects == 0 {
		return h
	}
	refs, _ := reference.Find(body) // what precedes an error counts
	for i := range refs {
		switch r := &refs[i]; {
		case !r.Context:
		case isImage(r):
			h.Images++
		case isTurn(r) && seen.add(r.ID, &h.Turns):
		case h.Field == "":
			h.Field = r.Field
		}
	}
	return h
}

// EarlierTurns returns the tokens of the response or interaction with an id and of all turns before
// it, or of an item with that id; ok is false if they are not known.
type EarlierTurns func(id string) (tokens int64, ok bool)

// add adds the tokens of a turn to a sum, if they are known. A nil Seen has none.
func (s EarlierTurns) add(id string, sum *int64) bool {
	if s == nil {
		return false
	}
	n, ok := s(id)
	*sum += n
	return ok
}

// isTurn reports whether a reference is one that a request of Responses or Interactions
// continues. Its target does not change, unlike a conversation or a thread, to which others may
// add.
func isTurn(r *reference.Reference) bool {
	switch strings.ToLower(strings.ReplaceAll(r.Field, "_", "")) {
	case "previousresponseid", "previousinteractionid":
		return true
	}
	return false
}

// isImage reports whether a reference is the address of an image.
func isImage(r *reference.Reference) bool {
	if r.Kind != reference.URL {
		return false
	}
	field := strings.ToLower(strings.ReplaceAll(r.Field, "_", ""))
	return strings.HasSuffix(field, "imageurl") || strings.HasSuffix(field, "imageurl.url")
}

// hosts are the providers with models that others serve under the same names.
var hosts = [...]string{"openai", "anthropic", "google"}

// ContextWindow returns the context window of a provider's model in tokens, by the first of its names
// that is known; 0 if none is.
func ContextWindow(provider string, names ...string) int64 {
	for _, name := range names {
		if base, ok := strings.CutPrefix(name, "ft:"); ok { // ft:BASE:ORGANIZATION:SUFFIX:ID
			name, _, _ = strings.Cut(base, ":")
		}
		for _, host := range append([]string{provider}, hosts[:]...) {
			if m := modelmeta.Of(host, name); m != nil && m.Window > 0 {
				return m.Window
			}
		}
	}
	return 0
}

// ChargeRows charges what the rows of a batch used, one entry for each model.
func ChargeRows(b *Bill, used []chat.Meter) {
	if len(used) == 0 {
		return
	}
	b.Reported.InMode(batchMode)
	for _, m := range used {
		b.Reported.AsPriced(m)
		b.Charge(m.Usage)
	}
	b.Spend()
}
