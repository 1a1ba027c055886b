package job

import (
	"context"
	"encoding/json"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// States of a batch in OpenAI's shape.
const (
	validating = "validating"
	failed     = "failed"
	inProgress = "in_progress"
	completed  = "completed"
	expired    = "expired"
	cancelling = "cancelling"
	cancelled  = "cancelled"
)

// Batch is a batch in OpenAI's shape. Times are Unix seconds, 0 for none.
type Batch struct {
	ID, Status                                             string
	Output, Errors                                         string // ids of files
	Problem                                                string // why it failed
	Created, Began, Finalizing, Ended, Expires, Cancelling int64
	Total, Completed, Failed                               int64
	note
}

// note is what the gateway stores about a batch.
type note struct {
	Endpoint string          `json:"endpoint"`
	Input    string          `json:"input_file_id"`
	Window   string          `json:"completion_window"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Model    string          `json:"model,omitempty"`
	Rows     int64           `json:"rows,omitempty"`
	Object   string          `json:"object,omitempty"`  // where the rows are at the provider
	Stopped  int64           `json:"stopped,omitempty"` // when it ended, in Unix seconds, if the provider does not report it later
}

// batchRequest is a client's request for a batch. The route has checked its limits.
type batchRequest struct {
	note
	Output  json.RawMessage `json:"output_expires_after"`
	Options struct {
		JobName string          `json:"job_name"`
		Model   string          `json:"model"`
		RoleARN string          `json:"role_arn"`
		Output  json.RawMessage `json:"output_data_config"`
	} `json:"provider_options"`
	Named      string          `json:"-"` // the model as the body names it
	JobName    string          `json:"job_name"`
	RoleARN    string          `json:"role_arn"`
	OutputData json.RawMessage `json:"output_data_config"`
}

// known are the fields of asked; any others are reported.
var known = map[string]bool{
	"endpoint": true, "input_file_id": true, "completion_window": true, "metadata": true, "model": true, "provider_options": true,
	"job_name": true, "role_arn": true, "output_data_config": true,
}

// readBatchRequest reads the body of a new batch.
func readBatchRequest(j *chat.Job) (*batchRequest, error) {
	a := new(batchRequest)
	if err := json.Unmarshal(j.Body, a); err != nil {
		return nil, badMember(err)
	}
	if a.Window != "24h" {
		return nil, fault.Invalid("completion_window", "completion_window must be 24h for %s", j.ProviderName)
	}
	if string(a.Metadata) == "null" {
		a.Metadata = nil
	}
	reportOthers(j, known)
	for _, own := range []struct{ outer, inner *string }{{&a.JobName, &a.Options.JobName}, {&a.RoleARN, &a.Options.RoleARN}, {&a.Model, &a.Options.Model}} {
		if *own.outer == "" {
			*own.outer = *own.inner
		}
	}
	if a.Named = a.Model; j.Model != "" {
		a.Model = j.Model
	}
	if len(a.OutputData) == 0 {
		a.OutputData = a.Options.Output
	}
	return a, j.Loss.Err()
}

// reportOthers reports fields of the body that no provider of this package gets.
func reportOthers(j *chat.Job, known map[string]bool) {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(j.Body, &all)
	for name, v := range all {
		if !known[name] && string(v) != "null" {
			j.Loss.Add(name, upstream.UnsupportedField)
		}
	}
}

// badMember is the fault for a field of the wrong type.
func badMember(err error) error {
	field := "body"
	if wrong, ok := err.(*json.UnmarshalTypeError); ok && wrong.Field != "" {
		field = wrong.Field
		return fault.Invalid(field, "%s must not be of the type %s", field, wrong.Value)
	}
	return fault.Invalid(field, "body must be a JSON object")
}

// remember stores data of a batch that the provider does not return.
func remember(ctx context.Context, j *chat.Job, id string, n *note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return fault.Invalid("metadata", "metadata cannot be stored")
	}
	return j.Files.SetData(ctx, id, b)
}

// recall adds the stored data to batches.
func recall(ctx context.Context, j *chat.Job, batches ...*Batch) error {
	ids := make([]string, len(batches))
	for i, b := range batches {
		ids[i] = b.ID
	}
	notes, err := j.Files.Data(ctx, ids...)
	if err != nil {
		return err
	}
	for _, b := range batches {
		own := b.note
		if raw := notes[b.ID]; raw == nil || json.Unmarshal(raw, &b.note) != nil {
			b.note = note{Endpoint: "/v1/chat/completions", Window: "24h"} // it was made without the gateway
		}
		if b.Model == "" {
			b.Model = own.Model
		}
		if b.Total == 0 {
			b.Total = b.Rows
		}
	}
	return nil
}

// Append writes the batch.
func (b *Batch) Append(dst []byte) []byte {
	o := upstream.Begin(dst)
	o.Str("id", b.ID)
	o.Str("object", "batch")
	o.Str("endpoint", b.Endpoint)
	if b.Model != "" {
		o.Str("model", b.Model)
	}
	o.Key("errors")
	if b.Problem == "" {
		o.B = append(o.B, "null"...)
	} else {
		o.Open('{')
		o.Str("object", "list")
		o.Key("data")
		o.Open('[')
		o.Open('{')
		o.Str("code", "failed")
		o.Str("message", b.Problem)
		o.Raw("param", []byte("null"))
		o.Raw("line", []byte("null"))
		o.B = append(o.B, "}]}"...)
	}
	o.Str("input_file_id", b.Input)
	o.Str("completion_window", b.Window)
	o.Str("status", b.Status)
	AppendBatchState(o, &BatchState{
		Status: b.Status, Output: b.Output, Errors: b.Errors, Created: b.Created, Began: b.Began, Expires: b.Expires, Finalizing: b.Finalizing,
		Cancelling: b.Cancelling, Ended: b.Ended, Total: b.Total, Completed: b.Completed, Failed: b.Failed, Metadata: b.Metadata,
	})
	o.Close('}')
	return o.B
}

// BatchState is the progress of a batch and its results. Times are in seconds; 0 means not
// yet.
type BatchState struct {
	Status                                                 string
	Output, Errors                                         string // ids of files
	Created, Began, Expires, Finalizing, Cancelling, Ended int64
	Total, Completed, Failed                               int64
	Metadata                                               []byte
}

// AppendBatchState writes this part of a batch object, its last fields, in the shape of
// OpenAI.
func AppendBatchState(o *upstream.Object, s *BatchState) {
	nullableStr(o, "output_file_id", s.Output)
	nullableStr(o, "error_file_id", s.Errors)
	o.Int("created_at", s.Created)
	at := func(name string, when bool, t int64) {
		if !when {
			t = 0
		}
		nullableInt(o, name, t)
	}
	at("in_progress_at", true, s.Began)
	at("expires_at", true, s.Expires)
	at("finalizing_at", true, s.Finalizing)
	at("completed_at", s.Status == completed, s.Ended)
	at("failed_at", s.Status == failed, s.Ended)
	at("expired_at", s.Status == expired, s.Ended)
	at("cancelling_at", true, s.Cancelling)
	at("cancelled_at", s.Status == cancelled, s.Ended)
	o.Key("request_counts")
	o.Open('{')
	o.Int("total", s.Total)
	o.Int("completed", s.Completed)
	o.Int("failed", s.Failed)
	o.Close('}')
	o.Key("metadata")
	if len(s.Metadata) == 0 {
		o.B = append(o.B, "null"...)
	} else {
		o.B = append(o.B, s.Metadata...)
	}
}

// batchResponse is the response with one batch.
func batchResponse(ctx context.Context, j *chat.Job, b *Batch) (*chat.JobResponse, error) {
	if err := recall(ctx, j, b); err != nil {
		return nil, err
	}
	return chat.JobJSON(b.Append(nil)), nil
}

// batchPage is the response with a page of batches.
func batchPage(ctx context.Context, j *chat.Job, page []*Batch, more bool) (*chat.JobResponse, error) {
	if err := recall(ctx, j, page...); err != nil {
		return nil, err
	}
	ids, entries := make([]string, len(page)), make([][]byte, len(page))
	for i, b := range page {
		ids[i], entries[i] = b.ID, b.Append(nil)
	}
	return chat.JobJSON(appendList(nil, ids, entries, more)), nil
}

// appendList writes a page of a list.
func appendList(dst []byte, ids []string, entries [][]byte, more bool) []byte {
	o := upstream.Begin(dst)
	o.Str("object", "list")
	o.Key("data")
	o.Open('[')
	for _, e := range entries {
		o.Element(e)
	}
	o.Close(']')
	first, last := "", ""
	if len(ids) > 0 {
		first, last = ids[0], ids[len(ids)-1]
	}
	nullableStr(o, "first_id", first)
	nullableStr(o, "last_id", last)
	o.Bool("has_more", more)
	o.Close('}')
	return o.B
}

func nullableStr(o *upstream.Object, name, v string) {
	if v == "" {
		o.Raw(name, []byte("null"))
		return
	}
	o.Str(name, v)
}

func nullableInt(o *upstream.Object, name string, n int64) {
	if n == 0 {
		o.Raw(name, []byte("null"))
		return
	}
	o.Int(name, n)
}

// seconds reads a time in RFC 3339; 0 for none.
func seconds(s string) int64 {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Unix() < 0 {
		return 0
	}
	return t.Unix()
}
