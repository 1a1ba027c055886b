package job

import (
	"context"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// tune makes datasets of the files and starts a supervised fine-tuning job.
func (f Fireworks) tune(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	want, err := readTune(j)
	if err != nil {
		return nil, err
	}
	hyper, err := want.hyper()
	if err != nil {
		return nil, err
	}
	if want.RoleARN != "" {
		j.Loss.Add("provider_options", upstream.UnsupportedField)
	}
	for _, name := range []string{"batch_size", "learning_rate_multiplier"} {
		if hyper[name] != "" {
			j.Loss.Add("hyperparameters."+name, upstream.UnsupportedField)
		}
	}
	if err := j.Loss.Err(); err != nil {
		return nil, err
	}
	account, err := f.account(j)
	if err != nil {
		return nil, err
	}
	id := "gateway-" + strings.ToLower(j.Request)
	o := upstream.Begin(nil)
	o.Str("displayName", orElse(want.Suffix, orElse(want.JobName, id)))
	o.Str("baseModel", fullModel(want.Model))
	if want.Suffix != "" {
		o.Str("outputModel", account+"models/"+want.Suffix)
	}
	if n := hyper["n_epochs"]; n != "" {
		o.Raw("epochs", []byte(n))
	}
	for _, from := range []struct{ field, file, dataset, member string }{
		{"training_file", want.Training, id + "-training", "dataset"}, {"validation_file", want.Validation, id + "-validation", "evaluationDataset"},
	} {
		if from.file == "" && from.field == "validation_file" {
			continue
		}
		file, examples, err := examplesFile(ctx, j, from.field, from.file, mostFireworks, appendTalk)
		if err != nil {
			return nil, err
		}
		if err := someExamples(file, from.field, examples); err != nil {
			return nil, err
		}
		if err := f.dataset(ctx, j, from.dataset, file); err != nil {
			return nil, tooLong(err, j, from.field, mostFireworks)
		}
		o.Str(from.member, account+"datasets/"+from.dataset)
	}
	o.Close('}')
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: o.B})
	if err != nil {
		return nil, err
	}
	job, err := f.readTuning(resp)
	if err != nil {
		return nil, err
	}
	made := job.tuning()
	if err := rememberTuning(ctx, j, made.ID, &want.tuneNote); err != nil {
		return nil, err
	}
	return tuningResponse(ctx, j, made)
}

// supervisedJob is a fine-tuning job at Fireworks AI.
type supervisedJob struct {
	Name      string `json:"name"`
	Base      string `json:"baseModel"`
	Tuned     string `json:"outputModel"`
	State     string `json:"state"`
	Created   string `json:"createTime"`
	Completed string `json:"completedTime"`
	Status    struct {
		Message string `json:"message"`
	} `json:"status"`
}

var fireworksTunings = map[string]string{
	"CREATING": tuneRunning, "RUNNING": tuneRunning, "EVALUATION": tuneRunning, "WRITING_RESULTS": tuneRunning, "COMPLETED": tuneSucceeded,
	"EARLY_STOPPED": tuneSucceeded, "FAILED": tuneFailed, "CANCELLED": tuneCancelled, "DELETING": tuneCancelled,
}

func (s *supervisedJob) tuning() *Tuning {
	t := &Tuning{
		ID: lastSegment(s.Name), Created: seconds(s.Created), Ended: seconds(s.Completed),
		Status: orElse(fireworksTunings[strings.TrimPrefix(s.State, "JOB_STATE_")], tuneQueued),
	}
	t.Model = s.Base
	switch t.Status {
	case tuneSucceeded:
		t.Tuned = s.Tuned
	case tuneFailed:
		t.Problem = orElse(s.Status.Message, "The job failed.")
	}
	return t
}

func (Fireworks) readTuning(resp *http.Response) (*supervisedJob, error) {
	s := new(supervisedJob)
	if err := readJSON(resp, s); err != nil {
		return nil, err
	}
	if s.Name == "" || s.State == "" {
		return nil, upstream.Invalid("The provider's response is not a job", nil)
	}
	return s, nil
}

func (f Fireworks) supervised(ctx context.Context, j *chat.Job) (*Tuning, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: "finetune_get", ID: j.ID})
	if err != nil {
		return nil, err
	}
	job, err := f.readTuning(resp)
	if err != nil {
		return nil, err
	}
	return job.tuning(), nil
}

func (f Fireworks) tuning(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	t, err := f.supervised(ctx, j)
	if err == nil {
		return tuningResponse(ctx, j, t)
	}
	t = &Tuning{ID: j.ID, Status: tuneCancelled}
	if !notFound(err) || recallTunings(ctx, j, t) != nil || t.Stopped == 0 {
		return nil, err
	}
	t.Created, t.Ended = t.Stopped, t.Stopped
	return chat.JobJSON(t.Append(nil)), nil
}

// stopTuning deletes a job that has not ended.
func (f Fireworks) stopTuning(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	t, err := f.supervised(ctx, j)
	if err != nil {
		return nil, err
	}
	if t.Status == tuneSucceeded || t.Status == tuneFailed || t.Status == tuneCancelled {
		return nil, fault.Invalid("id", "id names a job that is %s and cannot be cancelled", t.Status)
	}
	if err := discard(j.Call(ctx, &chat.JobCall{Method: http.MethodDelete, Operation: j.Operation, ID: j.ID})); err != nil {
		return nil, err
	}
	if err := recallTunings(ctx, j, t); err != nil {
		return nil, err
	}
	t.Stopped = j.Now.Unix()
	if err := rememberTuning(ctx, j, t.ID, &t.tuneNote); err != nil {
		return nil, err
	}
	t.Status, t.Ended = tuneCancelled, t.Stopped
	return chat.JobJSON(t.Append(nil)), nil
}
