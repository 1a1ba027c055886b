package job

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Anthropic carries Message Batches. Their rows are part of the request that makes them, at
// most 100,000 rows and 256 MB, and come back as a stream of results.
type Anthropic struct{}

var _ chat.Jobs = Anthropic{}

// maxRequests bounds the body that makes a batch, in bytes, as Anthropic does.
const maxRequests = 256 << 20

// Name implements chat.Jobs.
func (Anthropic) Name() string { return "anthropic.jobs" }

// DecodeError implements chat.Jobs.
func (Anthropic) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return anthropic.Messages{}.DecodeError(status, h, body)
}

// Do implements chat.Jobs.
func (a Anthropic) Do(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	return steps{
		"batches_create": a.create,
		"batches_get":    by(a.one, http.MethodGet),
		"batches_cancel": by(a.one, http.MethodPost),
		"batches_list":   a.list,
	}.do(ctx, j, "batch", a.open)
}

// create sends the rows of the input file.
func (a Anthropic) create(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	want, err := readHosted(j)
	if err != nil {
		return nil, err
	}
	f, err := inputFile(ctx, j, "input_file_id", want.Input, "batch")
	if err != nil {
		return nil, err
	}
	r, err := newRows(j, want, anthropic.Messages{}.Name())
	if err != nil {
		return nil, err
	}
	call := &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: http.Header{"Content-Type": {"application/json"}}}
	if err := a.fill(ctx, call, r, f); err != nil {
		return nil, err
	}
	resp, err := j.Call(ctx, call)
	if err != nil {
		return nil, err
	}
	b, err := a.read(resp)
	if err != nil {
		return nil, err
	}
	want.Rows = r.n
	if r.last != nil && len(r.talks) == 1 {
		want.Model = r.last.Model
	}
	if err := remember(ctx, j, b.ID, &want.note); err != nil {
		return nil, err
	}
	return batchResponse(ctx, j, b)
}

const (
	requestsHead = `{"requests":[`
	requestsTail = `]}`
)

func appendRequest(dst []byte, n int64, id string, body []byte) []byte {
	if n > 1 {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"custom_id":`...)
	dst = wire.AppendJSONString(dst, rowName(id))
	dst = append(dst, `,"params":`...)
	return append(append(dst, body...), '}')
}

// fill checks all rows and gives the call its body.
func (Anthropic) fill(ctx context.Context, call *chat.JobCall, r *rows, f *chat.StoredFile) error {
	bad := ""
	source := func() io.ReadCloser {
		return r.source(ctx, f, func(dst []byte, n int64, id string, body []byte) []byte {
			if rowName(id) == "" && bad == "" {
				bad = id
			}
			return appendRequest(dst, n, id, body)
		})
	}
	p, err := newPayload(source, requestsHead, requestsTail, maxRequests, func() error {
		if bad != "" {
			return fault.Invalid("input_file_id", "input_file_id: custom_id %q is too long for %s, which accepts 64 characters", clip(bad), r.j.ProviderName)
		}
		return nil
	})
	if err := r.fault(tooLong(err, r.j, "input_file_id", maxRequests)); err != nil {
		return err
	}
	p.into(call)
	return nil
}

// Custom ids at Anthropic are 1 to 64 letters, digits, '-' and '_'. Any other character of
// an id is written as '_' and two digits.
const (
	maxRowName  = 64
	escapedName = "gw_"
)

func rowName(id string) string {
	plain := !strings.HasPrefix(id, escapedName)
	for i := range len(id) {
		plain = plain && (plainByte(id[i]) && id[i] != '.')
	}
	if !plain {
		id = escapedName + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(EscapeSegment(id), "_", "~5F"), ".", "~2E"), "~", "_")
	}
	if len(id) > maxRowName {
		return ""
	}
	return id
}

// customID is the id that rowName wrote.
func customID(name string) string {
	if rest, ok := strings.CutPrefix(name, escapedName); ok {
		var b strings.Builder
		for i := 0; i < len(rest); i++ {
			if rest[i] != '_' || i+2 >= len(rest) {
				b.WriteByte(rest[i])
				continue
			}
			hi, lo := strings.IndexByte(hexDigits, rest[i+1]), strings.IndexByte(hexDigits, rest[i+2])
			if hi < 0 || lo < 0 {
				return name
			}
			b.WriteByte(byte(hi<<4 | lo))
			i += 2
		}
		if id := b.String(); rowName(id) == name {
			return id
		}
	}
	return name
}

// messageBatch is a batch at Anthropic.
type messageBatch struct {
	ID        string `json:"id"`
	State     string `json:"processing_status"`
	Created   string `json:"created_at"`
	Ended     string `json:"ended_at"`
	Expires   string `json:"expires_at"`
	Archived  string `json:"archived_at"`
	Cancelled string `json:"cancel_initiated_at"`
	Results   string `json:"results_url"`
	Counts    struct {
		Processing, Succeeded, Errored, Canceled, Expired int64
	} `json:"request_counts"`
}

// batch is the batch in OpenAI's shape. Requests that were cancelled or expired count as
// failed.
func (m *messageBatch) batch() *Batch {
	c := &m.Counts
	unanswered := c.Errored + c.Canceled + c.Expired
	b := &Batch{
		ID: m.ID, Created: seconds(m.Created), Began: seconds(m.Created), Ended: seconds(m.Ended), Expires: seconds(m.Expires), Cancelling: seconds(m.Cancelled),
		Total: c.Processing + c.Succeeded + unanswered, Completed: c.Succeeded, Failed: unanswered, Status: inProgress,
	}
	switch {
	case m.State == "canceling":
		b.Status = cancelling
	case m.State != "ended":
	case c.Canceled > 0:
		b.Status = cancelled
	case c.Expired > 0:
		b.Status = expired
	default:
		b.Status = completed
	}
	if m.State == "ended" && m.Archived == "" {
		if c.Succeeded > 0 {
			b.Output = b.ID + responsesSuffix
		}
		if unanswered > 0 {
			b.Errors = b.ID + errorsSuffix
		}
	}
	return b
}

func (Anthropic) read(resp *http.Response) (*Batch, error) {
	var m messageBatch
	if err := readJSON(resp, &m); err != nil {
		return nil, err
	}
	if m.ID == "" || m.State == "" {
		return nil, upstream.Invalid("The provider's response is not a batch", nil)
	}
	return m.batch(), nil
}

func (a Anthropic) one(ctx context.Context, j *chat.Job, method string) (*chat.JobResponse, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: method, Operation: j.Operation, ID: j.ID})
	if err != nil {
		return nil, err
	}
	b, err := a.read(resp)
	if err != nil {
		return nil, err
	}
	return batchResponse(ctx, j, b)
}

func (a Anthropic) list(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	limit, err := limitOf(j, defaultPage, maxPage)
	if err != nil {
		return nil, err
	}
	q := url.Values{"limit": {itoa(int64(limit))}}
	if after := j.Query.Get("after"); after != "" {
		q.Set("after_id", after)
	}
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: j.Operation, Query: q.Encode()})
	if err != nil {
		return nil, err
	}
	var page struct {
		Data []messageBatch `json:"data"`
		More bool           `json:"has_more"`
	}
	if err := readJSON(resp, &page); err != nil {
		return nil, err
	}
	batches := make([]*Batch, len(page.Data))
	for i := range page.Data {
		batches[i] = page.Data[i].batch()
	}
	return batchPage(ctx, j, batches, page.More)
}

// open reads the results of a batch.
func (Anthropic) open(ctx context.Context, j *chat.Job, batch string) (*results, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: "batches_output", ID: batch})
	if err != nil {
		return nil, err
	}
	return &results{src: resp.Body, read: readResult, meter: meteredBy(anthropic.Messages{})}, nil
}

// unansweredTexts explain why a request has no response.
var unansweredTexts = map[string][2]string{
	"expired":  {"batch_expired", "The request was not run before the batch expired."},
	"canceled": {"batch_cancelled", "The request was not run before the batch was cancelled."},
	"errored":  {"api_error", "The request failed."},
}

func readResult(line []byte) (*result, error) {
	r := new(result)
	d := wire.NewDecoder(line)
	for key := range d.Object {
		switch string(key) {
		case "custom_id":
			r.id = customID(d.Str())
		case "result":
			r.read(d)
		default:
			d.Skip()
		}
	}
	if err := d.End(); err != nil {
		return nil, upstream.Invalid("The provider's results cannot be read", err)
	}
	words := unansweredTexts[r.kind]
	r.code, r.text = orElse(r.code, words[0]), orElse(r.text, words[1])
	return r, nil
}

func (r *result) read(d *wire.Decoder) {
	for key := range d.Object {
		switch string(key) {
		case "type":
			r.kind = d.Str()
		case "message":
			if r.message = d.Raw(); wire.KindOf(r.message) == wire.KindObject {
				var w wire.Walk
				if modelKey.Walk(r.message, &w) == nil && w.Spans[0].Present(r.message) {
					r.model, _ = wire.ScanString(w.Spans[0].Of(r.message), "model")
				}
			}
		case "error":
			if p := upstream.ReadError(d.Raw()); p != nil {
				r.code, r.text = p.Type, p.Message
			}
		default:
			d.Skip()
		}
	}
}

// Usage implements chat.Jobs.
func (a Anthropic) Usage(ctx context.Context, j *chat.Job) ([]chat.Meter, error) {
	return usageOf(ctx, j, a.open)
}
