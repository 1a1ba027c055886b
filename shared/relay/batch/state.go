package batch

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"gateway/shared/dialect/job"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// Status is the state of a batch.
type Status string

// The states of a batch.
const (
	Validating Status = "validating"
	Failed     Status = "failed"
	InProgress Status = "in_progress"
	Finalizing Status = "finalizing"
	Completed  Status = "completed"
	Expired    Status = "expired"
	Cancelling Status = "cancelling"
	Cancelled  Status = "cancelled"
)

// Ended reports whether a batch is in a final state.
func (s Status) Ended() bool {
	return s == Failed || s == Completed || s == Expired || s == Cancelled
}

// Windows of completion.
const (
	Immediate = "immediate" // the gateway runs the rows
	Day       = "24h"       // the provider's batches run them
)

// Lifetime is how long after its creation a batch may run.
const Lifetime = 24 * time.Hour

// Definition is the request for a batch. It is immutable and sealed.
type Definition struct {
	Endpoint string            `json:"endpoint"`
	Input    string            `json:"input"`
	Window   string            `json:"window"`
	Metadata json.RawMessage   `json:"metadata,omitempty"`
	Options  map[string]string `json:"options,omitempty"` // headers of the rows
	Create   json.RawMessage   `json:"create,omitempty"`  // further fields for the provider's own batch
	Key      string            `json:"key"`               // hash of the API key that created the batch
	Creator  Creator           `json:"maker,omitzero"`
}

// Creator is the creator of a batch, for its records. It is stored because a deleted key can no
// longer be looked up, while its batch at a provider must be ended.
type Creator struct {
	KeyID string `json:"key_id"`
	Type  string `json:"type"`
	User  string `json:"user,omitempty"`
	Slug  string `json:"slug,omitempty"` // of the workspace
}

// Problem is one entry of a batch's errors.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
	Line    int    `json:"line,omitempty"`
}

// Provider is the state of the batch at a provider.
type Provider struct {
	Stage  string          `json:"stage,omitempty"`  // next stage
	Judged string          `json:"judged,omitempty"` // the gateway's file of the rows after guardrails; "": no row has guardrails
	File   string          `json:"file,omitempty"`   // the rows, at the provider
	Batch  string          `json:"batch,omitempty"`
	Status string          `json:"status,omitempty"`
	Output string          `json:"output,omitempty"` // files, at the provider
	Errors string          `json:"errors,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"` // the provider's batch, as last read; none if it is long
}

// Progress is the progress of a batch. Times are Unix seconds, 0 for none.
type Progress struct {
	Status     Status    `json:"status"`
	Created    int64     `json:"created"`
	Began      int64     `json:"began,omitempty"`
	Expires    int64     `json:"expires"`
	Finalizing int64     `json:"finalizing,omitempty"`
	Ended      int64     `json:"ended,omitempty"`
	Cancelling int64     `json:"cancelling,omitempty"`
	Outcome    Status    `json:"outcome,omitempty"` // the final state in preparation
	Problems   []Problem `json:"problems,omitempty"`

	Total     int64 `json:"total,omitempty"`
	Succeeded int64 `json:"good,omitempty"`
	Bad       int64 `json:"bad,omitempty"`

	// Step counts the completed steps. A message is for one step; others are stale.
	Step   int64 `json:"step"`
	Next   int64 `json:"next"` // Unix milliseconds: due time of the step
	Offset int64 `json:"offset,omitempty"`
	Line   int   `json:"line,omitempty"` // the last one before Offset

	Output string `json:"output,omitempty"` // ids of files
	Errors string `json:"errors,omitempty"`

	Provider Provider `json:"provider,omitzero"`
}

// Limits of one item of the store, in bytes: of the definition, and of the progress, in which
// problems and the provider's texts may be long.
const (
	maxDefinition = 128 << 10
	maxProgress   = 160 << 10
	maxText       = 1 << 10 // of one text of a problem
)

// encode encodes the progress. Content beyond the limit is dropped: the provider's response,
// then all problems but the first.
func (p *Progress) encode() ([]byte, error) {
	for i := range p.Problems {
		q := p.Problems[i]
		p.Problems[i] = Problem{cut(q.Code), cut(q.Message), cut(q.Param), q.Line}
	}
	for {
		b, err := json.Marshal(p)
		switch {
		case err != nil || len(b) <= maxProgress:
			return b, err
		case p.Provider.Answer != nil:
			p.Provider.Answer = nil
		case len(p.Problems) > 1:
			p.Problems = p.Problems[:len(p.Problems)/2]
		default:
			return b, nil
		}
	}
}

// cut truncates an external text.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "")
}

// cancel starts the cancellation of a batch.
func (p *Progress) cancel(now time.Time) error {
	switch p.Status {
	case Validating, InProgress:
		p.Status, p.Cancelling = Cancelling, now.Unix()
	case Cancelling:
	default:
		return fault.Newf(fault.Conflict, "id", "The batch is %s and can no longer be cancelled", p.Status)
	}
	return nil
}

// Validated records the result of reading all rows: a batch with problems has ended, one without
// starts with its first stage at a provider, "" for none, unless it is cancelled.
func (p *Progress) Validated(problems []Problem, rows int, stage string, now time.Time) {
	if p.Problems = problems; len(problems) > 0 {
		p.End(Failed, now)
		return
	}
	p.Total, p.Began = int64(rows), now.Unix()
	if p.Status != Cancelling {
		p.Status, p.Provider = InProgress, Provider{Stage: stage}
	}
}

// Fail ends a batch that cannot continue; results that it has are written first.
func (p *Progress) Fail(why Problem, now time.Time) {
	p.Problems = append(p.Problems, why)
	if p.Outcome == "" && p.Provider.Stage == "" && p.Succeeded+p.Bad > 0 {
		p.Finalize(Failed, now)
		return
	}
	p.End(Failed, now)
}

// Close ends a batch with its files, "" for none or those before, and with rows that have failed
// because they were not executed.
func (p *Progress) Close(output, failures string, left int64, now time.Time) {
	p.Output, p.Errors, p.Bad = cmp.Or(output, p.Output), cmp.Or(failures, p.Errors), p.Bad+left
	p.End(p.Outcome, now)
}

// Advance completes a step; the next one is due at next.
func (p *Progress) Advance(next time.Time) {
	p.Step++
	p.Next = next.UnixMilli()
}

// End sets the final state of a batch.
func (p *Progress) End(s Status, now time.Time) {
	p.Status, p.Ended, p.Outcome = s, now.Unix(), ""
}

// Finalize starts the end of a batch.
func (p *Progress) Finalize(outcome Status, now time.Time) {
	p.Outcome = outcome
	if outcome != Cancelled {
		p.Status = Finalizing // a cancelled batch remains cancelling until it has ended
	}
	p.Finalizing = now.Unix()
}

// Batch is one batch of a workspace.
type Batch struct {
	ID string
	Definition
	Progress

	rev    int64
	holder string // of the lease; "" for none
	until  int64  // Unix milliseconds
}

// Holder returns the holder of the batch's current lease; "" if there is none.
func (b *Batch) Holder(now time.Time) string {
	if b.until <= now.UnixMilli() {
		return ""
	}
	return b.holder
}

// Append writes the batch in OpenAI's format. details adds the last state of the batch at its
// provider.
func (b *Batch) Append(dst []byte, details bool) []byte {
	o := upstream.Begin(dst)
	o.Str("id", b.ID)
	o.Str("object", "batch")
	o.Str("endpoint", b.Endpoint)
	errs := b.ErrorsObject()
	if errs == nil {
		errs = []byte("null")
	}
	o.Raw("errors", errs)
	o.Str("input_file_id", b.Input)
	o.Str("completion_window", b.Window)
	o.Str("status", string(b.Status))
	job.AppendBatchState(o, &job.BatchState{
		Status: string(b.Status), Output: b.Output, Errors: b.Progress.Errors, Created: b.Created, Began: b.Began, Expires: b.Expires, Finalizing: b.Finalizing,
		Cancelling: b.Cancelling, Ended: b.Ended, Total: b.Total, Completed: b.Succeeded, Failed: b.Bad, Metadata: b.Metadata,
	})
	if details {
		b.appendDetails(o)
	}
	o.Close('}')
	return o.B
}

// ErrorsObject returns the batch's errors; nil if there are none.
func (b *Batch) ErrorsObject() []byte {
	if len(b.Problems) == 0 {
		return nil
	}
	o := upstream.Begin(nil)
	o.Str("object", "list")
	o.Key("data")
	o.Open('[')
	for i := range b.Problems {
		p := &b.Problems[i]
		e := upstream.Begin(nil)
		e.Str("code", p.Code)
		e.Str("message", p.Message)
		if p.Param == "" {
			e.Raw("param", []byte("null"))
		} else {
			e.Str("param", p.Param)
		}
		if p.Line == 0 {
			e.Raw("line", []byte("null"))
		} else {
			e.Int("line", int64(p.Line))
		}
		e.Close('}')
		o.Element(e.B)
	}
	o.Close(']')
	o.Close('}')
	return o.B
}

func (b *Batch) appendDetails(o *upstream.Object) {
	if b.Window != Day {
		o.Raw("provider_details", []byte("null"))
		return
	}
	o.Key("provider_details")
	o.Open('{')
	p := &b.Provider
	for _, m := range [...][2]string{{"batch_id", p.Batch}, {"input_file_id", p.File}, {"status", p.Status}} {
		if m[1] == "" {
			o.Raw(m[0], []byte("null"))
		} else {
			o.Str(m[0], m[1])
		}
	}
	if !json.Valid(p.Answer) {
		o.Raw("batch", []byte("null"))
	} else {
		o.Raw("batch", p.Answer)
	}
	o.Close('}')
}

// AppendResult writes the output row of a request that got a status.
func AppendResult(dst []byte, batch string, line int, custom string, status int, request string, body []byte) []byte {
	o := beginRow(dst, batch, line, custom)
	o.Key("response")
	o.Open('{')
	o.Int("status_code", int64(status))
	o.Str("request_id", request)
	o.Key("body")
	if json.Valid(body) {
		o.B = compact(o.B, body)
	} else {
		o.Text(string(body))
	}
	o.Close('}')
	o.Raw("error", []byte("null"))
	return append(o.B, "}\n"...)
}

// AppendFailure writes the output row of a request that got no response.
func AppendFailure(dst []byte, batch string, line int, custom, code, message string) []byte {
	o := beginRow(dst, batch, line, custom)
	o.Raw("response", []byte("null"))
	o.Key("error")
	o.Open('{')
	o.Str("code", code)
	o.Str("message", message)
	return append(o.B, "}}\n"...)
}

func beginRow(dst []byte, batch string, line int, custom string) *upstream.Object {
	o := upstream.Begin(dst)
	o.Str("id", "batch_req_"+plainID(batch)+"_"+itoa(line))
	o.Str("custom_id", custom)
	return o
}
