package job

import (
	"context"
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// tune writes the files to the bucket and starts a tuning job.
func (v Vertex) tune(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	want, err := readTune(j)
	if err != nil {
		return nil, err
	}
	if want.RoleARN != "" {
		j.Loss.Add("role_arn", upstream.UnsupportedField)
	}
	if err := j.Loss.Err(); err != nil {
		return nil, err
	}
	bucket, err := v.bucket(j)
	if err != nil {
		return nil, err
	}
	hyper, err := want.hyper()
	if err != nil {
		return nil, err
	}
	adapter, err := adapterSize(hyper["batch_size"])
	if err != nil {
		return nil, err
	}
	folder := bucket + "/gateway/tuning/" + j.Request + "/"
	o := upstream.Begin(nil)
	o.Str("baseModel", want.Model)
	o.Str("tunedModelDisplayName", orElse(want.Suffix, orElse(want.JobName, "gateway-"+j.Request)))
	o.Key("supervisedTuningSpec")
	o.Open('{')
	for _, f := range []struct{ field, id, name, member string }{
		{"training_file", want.Training, "training.jsonl", "trainingDatasetUri"}, {"validation_file", want.Validation, "validation.jsonl", "validationDatasetUri"},
	} {
		if f.id == "" && f.field == "validation_file" {
			continue
		}
		if err := examples(ctx, j, f.field, f.id, folder+f.name, appendContents); err != nil {
			return nil, err
		}
		o.Str(f.member, "gs://"+folder+f.name)
	}
	if hyper["n_epochs"]+hyper["learning_rate_multiplier"]+adapter != "" {
		o.Key("hyperParameters")
		o.Open('{')
		o.StrIf("epochCount", hyper["n_epochs"])
		if rate := hyper["learning_rate_multiplier"]; rate != "" {
			o.Raw("learningRateMultiplier", []byte(rate))
		}
		o.StrIf("adapterSize", adapter)
		o.Close('}')
	}
	o.B = append(o.B, "}}"...)
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: o.B})
	if err != nil {
		return nil, err
	}
	job, err := readTuning(resp)
	if err != nil {
		return nil, err
	}
	made := job.tuning()
	if err := rememberTuning(ctx, j, made.ID, &want.tuneNote); err != nil {
		return nil, err
	}
	return tuningResponse(ctx, j, made)
}

// adapterSize takes the place of the size of a batch, which Vertex AI does not know: it is
// the size of the adapter that is trained.
func adapterSize(n string) (string, error) {
	if n == "" {
		return "", nil
	}
	size := map[string]string{"1": "ONE", "2": "TWO", "4": "FOUR", "8": "EIGHT", "16": "SIXTEEN", "32": "THIRTY_TWO"}[n]
	if size == "" {
		return "", fault.Invalid("hyperparameters.batch_size", "hyperparameters.batch_size is the size of the adapter: it must be 1, 2, 4, 8, 16 or 32")
	}
	return "ADAPTER_SIZE_" + size, nil
}

// appendContents writes one example as Gemini reads it.
func appendContents(dst, line []byte) ([]byte, error) {
	e, err := readExample(line)
	if err != nil {
		return dst, err
	}
	if e.prompt != "" {
		e.messages = []string{"user", e.prompt, "assistant", e.completion}
	}
	turn := func(o *upstream.Object, role string, texts ...string) {
		o.Open('{')
		o.Str("role", role)
		o.Key("parts")
		appendTexts(o, texts...)
		o.Close('}')
	}
	o := upstream.Begin(dst)
	if len(e.system) > 0 {
		o.Key("systemInstruction")
		turn(o, "system", e.system...)
	}
	o.Key("contents")
	o.Open('[')
	for i := 0; i < len(e.messages); i += 2 {
		role := "user"
		if e.messages[i] == "assistant" {
			role = "model"
		}
		turn(o, role, e.messages[i+1])
	}
	return append(o.B, "]}\n"...), nil
}

// example is one example of a training file: a conversation, or a prompt and its
// completion.
type example struct {
	system, messages   []string // role, text, role, text ...
	prompt, completion string
}

func readExample(line []byte) (*example, error) {
	e := new(example)
	talks := false
	d := wire.NewDecoder(line)
	for key := range d.Object {
		switch string(key) {
		case "messages":
			talks = true
			for range d.Array {
				role, text := readTurn(d)
				switch role {
				case "system", "developer":
					e.system = append(e.system, text)
				case "user", "assistant":
					e.messages = append(e.messages, role, text)
				default:
					d.Fail("role must be system, user or assistant")
				}
			}
		case "prompt":
			e.prompt = d.Str()
		case "completion":
			e.completion = d.Str()
		default:
			d.Skip()
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	if talks {
		e.prompt, e.completion = "", ""
	}
	if len(e.messages) == 0 && (e.prompt == "" || e.completion == "") {
		return nil, fault.Invalid("messages", "messages is required: a conversation; or prompt and completion")
	}
	return e, nil
}

// tuningJob is a fine-tuning job at Vertex AI.
type tuningJob struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Base    string `json:"baseModel"`
	Created string `json:"createTime"`
	Ended   string `json:"endTime"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
	Tuned struct {
		Model    string `json:"model"`
		Endpoint string `json:"endpoint"`
	} `json:"tunedModel"`
	Stats struct {
		Supervised struct {
			Tokens count `json:"totalBillableTokenCount"`
		} `json:"supervisedTuningDataStats"`
	} `json:"tuningDataStats"`
}

var googleTunings = map[string]string{
	"JOB_STATE_RUNNING": tuneRunning, "JOB_STATE_UPDATING": tuneRunning, "JOB_STATE_SUCCEEDED": tuneSucceeded, "JOB_STATE_PARTIALLY_SUCCEEDED": tuneSucceeded,
	"JOB_STATE_FAILED": tuneFailed, "JOB_STATE_CANCELLING": tuneCancelled, "JOB_STATE_CANCELLED": tuneCancelled, "JOB_STATE_EXPIRED": tuneCancelled,
}

func (t *tuningJob) tuning() *Tuning {
	out := &Tuning{ID: lastSegment(t.Name), Created: seconds(t.Created), Ended: seconds(t.Ended), Status: orElse(googleTunings[t.State], tuneQueued)}
	out.Model = t.Base
	out.Trained = int64(t.Stats.Supervised.Tokens)
	switch out.Status {
	case tuneSucceeded:
		out.Tuned = orElse(t.Tuned.Endpoint, t.Tuned.Model)
	case tuneFailed:
		out.Problem = orElse(t.Error.Message, "The job failed.")
	}
	return out
}

func readTuning(resp *http.Response) (*tuningJob, error) {
	t := new(tuningJob)
	if err := readJSON(resp, t); err != nil {
		return nil, err
	}
	if t.Name == "" || t.State == "" {
		return nil, upstream.Invalid("The provider's response is not a job", nil)
	}
	return t, nil
}

func (Vertex) tuning(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: "finetune_get", ID: j.ID})
	if err != nil {
		return nil, err
	}
	t, err := readTuning(resp)
	if err != nil {
		return nil, err
	}
	return tuningResponse(ctx, j, t.tuning())
}

func (v Vertex) stopTuning(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	if err := discard(j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, ID: j.ID})); err != nil {
		return nil, err
	}
	return v.tuning(ctx, j)
}
