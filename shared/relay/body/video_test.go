package body

import "testing"

// TestJobsBillWhatTheyDeliver reads the end of a job and what of 24 ordered seconds it costs.
func TestJobsBillWhatTheyDeliver(t *testing.T) {
	t.Parallel()
	for response, want := range map[string]struct {
		job    Job
		ok     bool
		billed int64
	}{
		`{"id":"video_1","object":"video","status":"queued","seconds":"8"}`:      {Job{ID: "video_1"}, true, 24},
		`{"id":"video_1","object":"video","status":"in_progress"}`:               {Job{ID: "video_1"}, true, 24},
		`{"id":"video_1","object":"video","status":"completed"}`:                 {Job{ID: "video_1", Ended: true}, true, 24},
		`{"id":"video_1","object":"video","status":"failed","error":{"code":1}}`: {Job{ID: "video_1", Ended: true, Failed: true}, true, 0},
		`{"object":"video"}`: {Job{}, false, 24},
		`{"name":"models/veo-3.0-generate-001/operations/o1"}`:                                                                                         {Job{ID: "o1"}, true, 24},
		`{"name":"models/v/operations/o1","done":true,"error":{"code":3,"message":"x"}}`:                                                               {Job{ID: "o1", Ended: true, Failed: true}, true, 0},
		`{"name":"models/v/operations/o1","done":true,"error":null,"response":{"generateVideoResponse":{"generatedSamples":[{},{},{}]}}}`:              {Job{ID: "o1", Ended: true, Made: 3}, true, 24},
		`{"name":"models/v/operations/o1","done":true,"response":{"generateVideoResponse":{"raiMediaFilteredCount":3}}}`:                               {Job{ID: "o1", Ended: true, Withheld: 3}, true, 0},
		`{"name":"models/v/operations/o1","done":true,"response":{"generateVideoResponse":{"generatedSamples":[{}],"raiMediaFilteredCount":2}}}`:       {Job{ID: "o1", Ended: true, Made: 1, Withheld: 2}, true, 8},
		`{"name":"projects/p/locations/l/publishers/google/models/v/operations/u-1","done":true,"response":{"videos":[{}],"raiMediaFilteredCount":0}}`: {Job{ID: "u-1", Ended: true, Made: 1}, true, 24},
		`{"name":"models/v/operations/o1","done":true}`:                                                                                                {Job{ID: "o1", Ended: true}, true, 24},
		`{"name":"models/v/operations/o1","done":true,"response":{"generateVideoResponse":{"raiMediaFilteredCount":-5}}}`:                              {Job{ID: "o1", Ended: true}, true, 24},
		`{"name":"files/abc"}`: {Job{}, false, 24},
		`[]`:                   {Job{}, false, 24},
		``:                     {Job{}, false, 24},
	} {
		job, ok := ReadJob([]byte(response))
		if ok != want.ok || ok && job != want.job || job.BilledSeconds(24) != want.billed {
			t.Errorf("%s: %+v %t, %d seconds", response, job, ok, job.BilledSeconds(24))
		}
	}
}

func TestPathsOfVideoJobs(t *testing.T) {
	t.Parallel()
	for path, read := range map[string]string{
		"/v1beta/models/veo-3.0-generate-001:predictLongRunning":                                      "/v1beta/models/veo-3.0-generate-001/operations/i%2F1",
		"/v1/projects/p/locations/l/publishers/google/models/veo-3.0-generate-001:predictLongRunning": "",
		"/v1/videos": "/v1/videos/i%2F1", "/videos/": "/videos/i%2F1", "/v1/videos/edits": "/v1/videos/i%2F1", "/v1/videos/video_1/remix": "/v1/videos/i%2F1",
	} {
		if !OrdersVideo(path) || PathOfJob(path, "i%2F1") != read {
			t.Errorf("%s: %t, read at %q", path, OrdersVideo(path), PathOfJob(path, "i%2F1"))
		}
	}
	for _, path := range []string{"/v1/videos/video_1", "/v1/videos/video_1/content", "/v1/videos/characters", "/chat/completions", "/remix", ""} {
		if OrdersVideo(path) {
			t.Errorf("%s orders a video", path)
		}
	}
}
