package body

import (
	"encoding/json"
	"strings"

	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Video is the state of a video in a response, in OpenAI's format.
type Video struct {
	Model, Size string
	Usage       pricing.Usage
}

var videoKeys = wire.NewKeySet("object", "model", "size", "seconds")

// ReadVideo reads the video of a response; ok is false if it has none, or one that failed.
func ReadVideo(answer []byte) (video Video, ok bool) {
	var w wire.Walk
	if videoKeys.Walk(answer, &w) != nil {
		return video, false
	}
	text := func(i int) string {
		raw := w.Spans[i].Of(answer)
		if s, err := wire.ScanString(raw, ""); err == nil {
			return s
		}
		return string(raw)
	}
	seconds := number(text(3))
	if text(0) != "video" || seconds == 0 {
		return video, false
	}
	video.Model, video.Size = text(1), text(2)
	video.Usage.Set(pricing.Seconds, seconds)
	return video, true
}

// Job is what a response says about videos that a provider makes in its own time.
type Job struct {
	ID             string // of the video, or of the operation without its path
	Ended, Failed  bool
	Made, Withheld int64 // videos, if the response lists them: those filtered by the provider are withheld
}

// ReadJob reads the response to the order or to a read of a video job: a video in OpenAI's format,
// or a long-running operation of Google's. ok is false for anything else.
func ReadJob(response []byte) (job Job, ok bool) {
	type samples struct {
		Samples  []json.RawMessage `json:"generatedSamples"`
		Videos   []json.RawMessage `json:"videos"`
		Filtered int64             `json:"raiMediaFilteredCount"`
	}
	var r struct {
		Object   string          `json:"object"`
		ID       string          `json:"id"`
		Status   string          `json:"status"`
		Name     string          `json:"name"`
		Done     bool            `json:"done"`
		Error    json.RawMessage `json:"error"`
		Response struct {
			samples
			Inner samples `json:"generateVideoResponse"`
		} `json:"response"`
	}
	if json.Unmarshal(response, &r) != nil {
		return job, false
	}
	if r.Object == "video" {
		job.ID, job.Failed = r.ID, r.Status == "failed"
		job.Ended = job.Failed || r.Status == "completed"
		return job, r.ID != ""
	}
	at := strings.LastIndex(r.Name, "operations/")
	if at < 0 {
		return job, false
	}
	job.ID, job.Ended = r.Name[at+len("operations/"):], r.Done
	job.Failed = r.Done && len(r.Error) > 0 && !wire.IsNull(r.Error)
	for _, s := range [...]samples{r.Response.samples, r.Response.Inner} {
		job.Made += int64(len(s.Samples) + len(s.Videos))
		job.Withheld += max(s.Filtered, 0)
	}
	return job, job.ID != ""
}

// BilledSeconds returns the seconds that a provider bills of those that were ordered. Providers bill
// the videos that they deliver: a failed job is free, and so is a withheld video.
func (j *Job) BilledSeconds(ordered int64) int64 {
	switch all := j.Made + j.Withheld; {
	case j.Failed || all > 0 && j.Made == 0:
		return 0
	case j.Withheld > 0 && all <= mostCount:
		return (ordered*j.Made + all - 1) / all
	}
	return ordered
}

// OrdersVideo reports whether a POST to the path has a provider make videos in its own time.
func OrdersVideo(escapedPath string) bool {
	path := strings.TrimRight(strings.ToLower(escapedPath), "/")
	if strings.HasSuffix(path, ":predictlongrunning") || strings.HasSuffix(path, "/videos") {
		return true
	}
	for _, end := range [...]string{"/videos/edits", "/videos/extensions", "/remix"} {
		if strings.HasSuffix(path, end) {
			return strings.Contains(path, "/videos/")
		}
	}
	return false
}

// PathOfJob returns where the job with an id is read by GET, given the path of its order; empty if
// it is not read by GET, as at Vertex AI.
func PathOfJob(escapedPath, escapedID string) string {
	lower := strings.ToLower(escapedPath)
	if at := strings.LastIndex(lower, ":predictlongrunning"); at >= 0 {
		if strings.Contains(lower, "/publishers/") {
			return ""
		}
		return escapedPath[:at] + "/operations/" + escapedID
	}
	if at := strings.LastIndex(lower, "/videos"); at >= 0 {
		return escapedPath[:at] + "/videos/" + escapedID
	}
	return ""
}
