package batch

import (
	"encoding/json"

	"gateway/shared/dialect/job"
	"gateway/shared/dialect/upstream"
)

// Append writes the batch in OpenAI's format. details adds the last state of the batch at its
// provider.
func (b *Batch) Append(dst []byte, details bool) []byte {
	o := upstream.Begin(dst)
	o.Str("id", b.ID)
	o.Str("object", "batch")
	o.Str("endpoint", b.Endpoint)
	o.Key("errors")
	b.appendErrors(o)
	o.Str("input_file_id", b.Input)
	o.Str("completion_window", b.Window)
	o.Str("status", string(b.Status))
	job.AppendStanding(o, &job.Standing{
		Status: string(b.Status), Output: b.Output, Errors: b.Progress.Errors, Created: b.Created, Began: b.Began, Expires: b.Expires, Finalizing: b.Finalizing,
		Cancelling: b.Cancelling, Ended: b.Ended, Total: b.Total, Completed: b.Good, Failed: b.Bad, Metadata: b.Metadata,
	})
	if details {
		b.appendDetails(o)
	}
	o.Close('}')
	return o.B
}

func (b *Batch) appendErrors(o *upstream.Object) {
	if len(b.Problems) == 0 {
		o.B = append(o.B, "null"...)
		return
	}
	o.B = append(o.B, b.ErrorsObject()...)
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
	o.Key("provider_details")
	if b.Window != Day {
		o.B = append(o.B, "null"...)
		return
	}
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

// Answered writes the output row of a request that got a status.
func Answered(dst []byte, batch string, line int, custom string, status int, request string, body []byte) []byte {
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

// Unanswered writes the output row of a request that got no response.
func Unanswered(dst []byte, batch string, line int, custom, code, message string) []byte {
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
