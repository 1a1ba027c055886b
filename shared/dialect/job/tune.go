package job

import (
	"context"
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// States of a fine-tuning job in OpenAI's shape.
const (
	tuneValidating = "validating_files"
	tuneQueued     = "queued"
	tuneRunning    = "running"
	tuneSucceeded  = "succeeded"
	tuneFailed     = "failed"
	tuneCancelled  = "cancelled"
)

// Tuning is a fine-tuning job in OpenAI's shape. Times are Unix seconds, 0 for
// none.
type Tuning struct {
	ID, Status, Tuned, Problem string
	Created, Ended             int64
	Trained                    int64 // tokens; 0 if unknown
	tuneNote
}

// tuneNote is what the gateway stores about a job.
type tuneNote struct {
	Model      string          `json:"model"`
	Training   string          `json:"training_file"`
	Validation string          `json:"validation_file,omitempty"`
	Suffix     string          `json:"suffix,omitempty"`
	Hyper      json.RawMessage `json:"hyperparameters,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Stopped    int64           `json:"stopped,omitempty"` // as of a batch
}

// tuneRequest is a client's request for a job. The route has checked its limits.
type tuneRequest struct {
	tuneNote
	Method *struct {
		Type       string `json:"type"`
		Supervised struct {
			Hyper json.RawMessage `json:"hyperparameters"`
		} `json:"supervised"`
	} `json:"method"`
	JobName string `json:"job_name"`
	RoleARN string `json:"role_arn"`
	Options struct {
		JobName string `json:"job_name"`
		RoleARN string `json:"role_arn"`
	} `json:"provider_options"`
}

var tuneKnown = map[string]bool{
	"model": true, "training_file": true, "validation_file": true, "suffix": true, "hyperparameters": true, "metadata": true, "method": true,
	"job_name": true, "role_arn": true, "provider_options": true,
}

// readTune reads the body of a new job.
func readTune(j *chat.Job) (*tuneRequest, error) {
	a := new(tuneRequest)
	if err := json.Unmarshal(j.Body, a); err != nil {
		return nil, badMember(err)
	}
	if m := a.Method; m != nil {
		if m.Type != "" && m.Type != "supervised" {
			return nil, fault.Invalid("method.type", "method.type must be supervised for %s", j.ProviderName)
		}
		if len(m.Supervised.Hyper) > 0 {
			a.Hyper = m.Supervised.Hyper
		}
	}
	a.JobName, a.RoleARN = orElse(a.JobName, a.Options.JobName), orElse(a.RoleARN, a.Options.RoleARN)
	a.Model = orElse(j.Model, a.Model)
	for _, raw := range []*json.RawMessage{&a.Hyper, &a.Metadata} {
		if string(*raw) == "null" {
			*raw = nil
		}
	}
	reportOthers(j, tuneKnown)
	return a, j.Loss.Err()
}

// hyper returns the hyperparameters that are numbers, as text, by OpenAI's names. "auto"
// is left to the provider.
func (a *tuneRequest) hyper() (map[string]string, error) {
	all := map[string]json.RawMessage{}
	if len(a.Hyper) > 0 && json.Unmarshal(a.Hyper, &all) != nil {
		return nil, fault.Invalid("hyperparameters", "hyperparameters must be an object")
	}
	out := map[string]string{}
	for name, raw := range all {
		switch wire.KindOf(raw) {
		case wire.KindNumber:
			out[name] = string(raw)
		case wire.KindString, wire.KindNull:
		default:
			return nil, fault.Invalid("hyperparameters."+name, "hyperparameters.%s must be a number or auto", name)
		}
	}
	return out, nil
}

// Append writes the job.
func (t *Tuning) Append(dst []byte) []byte {
	o := upstream.Begin(dst)
	o.Str("id", t.ID)
	o.Str("object", "fine_tuning.job")
	o.Int("created_at", t.Created)
	o.Str("model", t.Model)
	nullableInt(o, "finished_at", t.Ended)
	nullableStr(o, "fine_tuned_model", t.Tuned)
	o.Str("organization_id", "")
	o.Str("status", t.Status)
	o.Key("hyperparameters")
	if len(t.Hyper) > 0 {
		o.B = append(o.B, t.Hyper...)
	} else {
		o.B = append(o.B, `{"n_epochs":"auto"}`...)
	}
	o.Str("training_file", t.Training)
	nullableStr(o, "validation_file", t.Validation)
	o.Raw("result_files", []byte("[]"))
	nullableInt(o, "trained_tokens", t.Trained)
	o.Key("error")
	if t.Problem == "" {
		o.B = append(o.B, "null"...)
	} else {
		o.Open('{')
		o.Str("code", "failed")
		o.Str("message", t.Problem)
		o.Raw("param", []byte("null"))
		o.Close('}')
	}
	if t.Suffix != "" {
		o.Str("user_provided_suffix", t.Suffix)
	}
	if len(t.Metadata) > 0 {
		o.Raw("metadata", t.Metadata)
	}
	o.Int("seed", 0)
	o.Close('}')
	return o.B
}

func rememberTuning(ctx context.Context, j *chat.Job, id string, n *tuneNote) error {
	b, err := json.Marshal(n)
	if err != nil {
		return fault.Invalid("metadata", "metadata cannot be stored")
	}
	return j.Files.SetData(ctx, id, b)
}

// recallTunings adds the stored data to jobs.
func recallTunings(ctx context.Context, j *chat.Job, jobs ...*Tuning) error {
	ids := make([]string, len(jobs))
	for i, t := range jobs {
		ids[i] = t.ID
	}
	notes, err := j.Files.Data(ctx, ids...)
	if err != nil {
		return err
	}
	for _, t := range jobs {
		model := t.Model
		if raw := notes[t.ID]; raw != nil {
			_ = json.Unmarshal(raw, &t.tuneNote)
		}
		t.Model = orElse(t.Model, model)
	}
	return nil
}

func tuningResponse(ctx context.Context, j *chat.Job, t *Tuning) (*chat.JobResponse, error) {
	if err := recallTunings(ctx, j, t); err != nil {
		return nil, err
	}
	return chat.JobJSON(t.Append(nil)), nil
}

func tuningPage(ctx context.Context, j *chat.Job, page []*Tuning, more bool) (*chat.JobResponse, error) {
	if err := recallTunings(ctx, j, page...); err != nil {
		return nil, err
	}
	ids, entries := make([]string, len(page)), make([][]byte, len(page))
	for i, t := range page {
		ids[i], entries[i] = t.ID, t.Append(nil)
	}
	return chat.JobJSON(appendList(nil, ids, entries, more)), nil
}
