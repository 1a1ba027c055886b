package job

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// predictionJob is a batch at Vertex AI.
type predictionJob struct {
	Name    string `json:"name"`
	Model   string `json:"model"`
	State   string `json:"state"`
	Created string `json:"createTime"`
	Began   string `json:"startTime"`
	Ended   string `json:"endTime"`
	Updated string `json:"updateTime"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
	Output struct {
		Directory string `json:"gcsOutputDirectory"`
	} `json:"outputInfo"`
	Stats struct {
		Good count `json:"successfulCount"`
		Bad  count `json:"failedCount"`
		Left count `json:"incompleteCount"`
	} `json:"completionStats"`
}

// count is a number that Google writes as text. It is 0 for anything else, and for -1,
// which means that the count is not known.
type count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil || n < 0 {
		n = 0
	}
	*c = count(n)
	return nil
}

var _ json.Unmarshaler = (*count)(nil)

var googleStates = map[string]string{
	"JOB_STATE_QUEUED": validating, "JOB_STATE_PENDING": validating, "JOB_STATE_RUNNING": inProgress, "JOB_STATE_UPDATING": inProgress,
	"JOB_STATE_PAUSED": inProgress, "JOB_STATE_SUCCEEDED": completed, "JOB_STATE_PARTIALLY_SUCCEEDED": completed, "JOB_STATE_FAILED": failed,
	"JOB_STATE_CANCELLING": cancelling, "JOB_STATE_CANCELLED": cancelled, "JOB_STATE_EXPIRED": expired,
}

func lastSegment(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// model is the job's model as clients name it.
func (p *predictionJob) model() string {
	if strings.HasPrefix(p.Model, "publishers/anthropic/") {
		return claudePrefix + lastSegment(p.Model)
	}
	return lastSegment(p.Model)
}

// batch is the job in OpenAI's shape. A job without counts may have both responses and
// failures.
func (p *predictionJob) batch() *Batch {
	b := &Batch{
		ID: lastSegment(p.Name), Created: seconds(p.Created), Began: seconds(p.Began), Ended: seconds(p.Ended),
		Completed: int64(p.Stats.Good), Failed: int64(p.Stats.Bad), Total: int64(p.Stats.Good + p.Stats.Bad + p.Stats.Left), Status: googleStates[p.State],
	}
	b.Model = p.model()
	switch b.Status {
	case "":
		b.Status = validating // a state that is not known here
	case failed:
		b.Problem = orElse(p.Error.Message, "The job failed.")
	case cancelling:
		b.Cancelling = seconds(p.Updated)
	}
	if b.Ended > 0 && p.Output.Directory != "" {
		if b.Completed > 0 || b.Total == 0 {
			b.Output = b.ID + responsesSuffix
		}
		if b.Failed > 0 {
			b.Errors = b.ID + errorsSuffix
		}
	}
	return b
}

func (Vertex) read(resp *http.Response) (*predictionJob, error) {
	p := new(predictionJob)
	if err := readJSON(resp, p); err != nil {
		return nil, err
	}
	if p.Name == "" || p.State == "" {
		return nil, upstream.Invalid("The provider's response is not a job", nil)
	}
	return p, nil
}

// job reads one job.
func (v Vertex) job(ctx context.Context, j *chat.Job, id string) (*predictionJob, error) {
	if strings.ContainsAny(id, "/:") {
		return nil, unknown(id)
	}
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: "batches_get", ID: id})
	if err != nil {
		return nil, err
	}
	return v.read(resp)
}

// open reads the rows that a job made. Rows of conversations are in one object, rows of
// embeddings in several.
func (v Vertex) open(ctx context.Context, j *chat.Job, batch string) (*results, error) {
	job, err := v.job(ctx, j, batch)
	if err != nil {
		return nil, err
	}
	folder, ok := strings.CutPrefix(strings.TrimSuffix(job.Output.Directory, "/")+"/", "gs://")
	if bucket, err := v.bucket(j); !ok || err != nil || !strings.HasPrefix(folder, bucket+"/") {
		return nil, fault.Newf(fault.NotFound, "id", "The batch %q has no results in the bucket of this provider", clip(batch))
	}
	out := &results{read: readInstance, model: job.model(), meter: meteredBy(gemini.Generate{})}
	name := func(int) string { return folder + "predictions.jsonl" }
	b := &Batch{ID: batch}
	if err := recall(ctx, j, b); err != nil {
		return nil, err
	}
	several := b.Endpoint == embeddingsEndpoint
	switch {
	case several:
		name = func(n int) string { return folder + fmt.Sprintf("%012d.jsonl", n) }
		out.meter = meteredVectors(gemini.VertexEmbeddings{}, out.model, j.Field)
	case strings.HasPrefix(out.model, claudePrefix):
		out.meter = meteredBy(anthropic.Messages{})
	}
	p := &parts{ctx: ctx, j: j, call: func(n int) *chat.JobCall { return &chat.JobCall{Method: http.MethodGet, Object: name(n)} }, most: 1}
	if several {
		p.most = maxParts
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	out.src = p
	return out, nil
}

// maxParts bounds the objects that hold results.
const maxParts = 10_000

// parts reads the responses of several calls, sequentially, up to the first call that finds
// nothing.
type parts struct {
	ctx  context.Context
	j    *chat.Job
	call func(n int) *chat.JobCall
	wrap func(io.ReadCloser) io.ReadCloser // splits the input into lines; nil if it has lines
	n    int
	most int
	from io.ReadCloser // current input
	line bool          // it ended with a line end
}

func (p *parts) next() error {
	if p.from != nil {
		_ = p.from.Close()
		p.from = nil
	}
	resp, err := p.j.Call(p.ctx, p.call(p.n))
	if err != nil {
		return err
	}
	if p.from = resp.Body; p.wrap != nil {
		p.from = p.wrap(resp.Body)
	}
	p.n++
	return nil
}

// Read implements io.Reader.
func (p *parts) Read(b []byte) (int, error) {
	for {
		n, err := p.from.Read(b)
		if n > 0 {
			p.line = b[n-1] == '\n'
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
		if err != io.EOF {
			return 0, err
		}
		if !p.line && len(b) > 0 { // the last line of one object must not join the first of the next
			p.line, b[0] = true, '\n'
			return 1, nil
		}
		if p.n == p.most {
			return 0, io.EOF
		}
		if err := p.next(); err != nil {
			if p.from = io.NopCloser(strings.NewReader("")); notFound(err) {
				p.most = p.n
				return 0, io.EOF
			}
			return 0, err
		}
	}
}

// Close implements io.Closer.
func (p *parts) Close() error { return p.from.Close() }

// readInstance reads {requestId | custom_id, status, response}, or for embeddings
// {instance, status, predictions}, which is read completely.
func readInstance(line []byte) (*result, error) {
	r := &result{kind: "errored"}
	var status []byte
	d := wire.NewDecoder(line)
	for key := range d.Object {
		switch string(key) {
		case "requestId", "custom_id":
			r.id = upstream.OptString(d)
		case "instance":
			if d.Kind() != wire.KindObject {
				d.Skip()
				continue
			}
			for key := range d.Object {
				if string(key) == "requestId" {
					r.id = upstream.OptString(d)
				} else {
					d.Skip()
				}
			}
		case "response":
			if raw := d.Raw(); wire.KindOf(raw) == wire.KindObject && string(raw) != "{}" {
				r.message = raw
			}
		case "predictions":
			if raw := d.Raw(); wire.KindOf(raw) == wire.KindArray && string(raw) != "[]" {
				r.message = line
			}
		case "status":
			status = d.Raw()
		default:
			d.Skip()
		}
	}
	if err := d.End(); err != nil {
		return nil, upstream.Invalid("The provider's results cannot be read", err)
	}
	why := string(status)
	if wire.KindOf(status) == wire.KindString {
		why, _ = wire.ScanString(status, "status")
	}
	if r.message != nil && (why == "" || why == "null" || why == "{}") {
		r.kind = "succeeded"
		return r, nil
	}
	r.message = nil
	r.rejected(why)
	return r, nil
}

// rejected reads a status: words, or words before an error of Google in JSON.
func (r *result) rejected(status string) {
	if at := strings.IndexByte(status, '{'); at >= 0 {
		if p := upstream.ReadError([]byte(status[at:])); p != nil {
			r.code, r.text = p.Type, p.Message
		}
	}
	r.code = orElse(r.code, "model_error")
	r.text = orElse(r.text, orElse(strings.TrimSpace(status), unansweredTexts["errored"][1]))
}
