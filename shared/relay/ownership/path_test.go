package ownership

import (
	"slices"
	"strings"
	"testing"

	"gateway/shared/dialect/reference"
)

func TestPathsTellWhatTheyStandFor(t *testing.T) {
	for path, want := range map[string]Path{
		"/chat/completions":                     {Collection: "chat/completions"},
		"/chat/completions/c1":                  {Collection: "chat/completions", ID: "c1"},
		"/embeddings":                           {},
		"/completions":                          {},
		"/files":                                {Collection: "files"},
		"/files/":                               {Collection: "files"},
		"/files/f1":                             {Collection: "files", ID: "f1"},
		"/files/f1/content":                     {Collection: "files", ID: "f1", Below: true},
		"/openai//Files/f1":                     {Collection: "files", ID: "f1"},
		"/deployments/d/v1/files/f1":            {Collection: "files", ID: "f1"},
		"/files/s3%3A%2F%2Fbucket%2Fkey":        {Collection: "files", ID: "s3://bucket/key"},
		"/fine_tuning/jobs/j1/events":           {Collection: "jobs", ID: "j1", Below: true},
		"/jobs/j1":                              {},
		"/threads/runs":                         {Collection: "threads"},
		"/threads/t1/runs":                      {Collection: "threads", ID: "t1", Below: true},
		"/v1beta/interactions":                  {Collection: "interactions"},
		"/v1beta/interactions/i1/cancel":        {Collection: "interactions", ID: "i1", Below: true},
		"/responses/compact":                    {Collection: "responses"},
		"/responses/input_tokens":               {Collection: "responses"},
		"/responses/r1/input_items":             {Collection: "responses", ID: "r1", Below: true},
		"/videos/edits":                         {Collection: "videos"},
		"/videos/v1/remix":                      {Collection: "videos", ID: "v1", Below: true},
		"/videos/characters":                    {Collection: "characters"},
		"/videos/characters/c1":                 {Collection: "characters", ID: "c1"},
		"/audio/voices/v1":                      {Collection: "voices", ID: "v1"},
		"/audio/voice_consents":                 {Collection: "voice_consents"},
		"/voices/v1":                            {},
		"/models/m":                             {Collection: "models", ID: "m"},
		"/v1beta/models/m:generateContent":      {Collection: "models", ID: "m:generateContent"},
		"/v1beta/models/m:predictLongRunning":   {Collection: "operations"},
		"/v1beta/models/m:batchGenerateContent": {Collection: "batches"},
		"/v1beta/models/m/operations/o1":        {Collection: "operations", ID: "o1"},
		"/v1beta/files/f1:download":             {Collection: "files", ID: "f1"},
		"/v2/batches/b1:cancel":                 {Collection: "batches", ID: "b1"},
		"/upload/v1beta/fileSearchStores/s1:uploadToFileSearchStore": {Collection: "filesearchstores", ID: "s1"},
		"/v1beta/fileSearchStores/s1/documents/d1":                   {Collection: "filesearchstores", ID: "s1", Below: true},
		"/async-invoke/arn:aws:bedrock:us-east-1:1:async-invoke%2Fx": {Collection: "async-invoke", ID: "arn:aws:bedrock:us-east-1:1:async-invoke/x"},
		"/v1/embed-jobs/e1/cancel":                                   {Collection: "embed-jobs", ID: "e1", Below: true},
		"/v1/batch/jobs/j1":                                          {Collection: "jobs", ID: "j1"},
		"/files/f1/../f2":                                            {Collection: "files", ID: "f1", Below: true, Ambiguous: true},
		"/files/f1/%2e%2E/f2":                                        {Collection: "files", ID: "f1", Below: true, Ambiguous: true},
		"/files%2Ff1":                                                {Collection: "files", ID: "f1", Ambiguous: true},
		"/files%5Cf1":                                                {Collection: "files", ID: "f1", Ambiguous: true},
		"/files;x/f1":                                                {Collection: "files", ID: "f1", Ambiguous: true},
		"/files/f1;x":                                                {Collection: "files", ID: "f1;x", Ambiguous: true},
		"/files/%zz":                                                 {Collection: "files", ID: "%zz", Ambiguous: true},
		"/echo/a;b/../c":                                             {Ambiguous: true},
	} {
		if got := PathOf(path); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}

func TestIDsAreFoundAtAnyDepth(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                          "",
		`{"input_file_id":"f1"}`:      "f1",
		`{"input_f\u0069le_id":"f1"}`: "f1",
		`{"a":[{"file_ids":["f1","f2"]},{"vector_store_ids":["v"]}]}`:                                                                      "f1 f2 v",
		`{"input":[{"type":"input_file","file_id":"f1"}],"previous_response_id":"r1"}`:                                                     "f1 r1",
		`{"source":{"type":"file_id","id":"f1"}}`:                                                                                          "f1",
		`{"source":{"id":"f1","type":"file_\u0069d"}}`:                                                                                     "f1",
		`{"conversation":"c1"}`:                                                                                                            "c1",
		`{"conversation":{"id":"c1"}}`:                                                                                                     "c1",
		`{"container":{"type":"auto","file_ids":["f1"]}}`:                                                                                  "f1",
		`{"container":{"id":"container_1","skills":[{"type":"anthropic","skill_id":"pptx"}]}}`:                                             "container_1",
		`{"batch":{"input_config":{"file_name":"files/a"}},"x":{"fileName":"a.txt"}}`:                                                      "files/a",
		`{"container":"cntr_1","x":{"container":"box"},"y":{"container":"auto"}}`:                                                          "cntr_1 box",
		`{"metadata":{"file_id":"mine"},"tools":[{"function":{"parameters":{"properties":{"file_id":{"type":"string","default":"x"}}}}}]}`: "",
		`{"content":[{"type":"tool_use","input":{"file_id":"mine"}}]}`:                                                                     "",
		`{"prompt_cache_options":{"comparison_response_id":"r1"}}`:                                                                         "r1",
		`{"tools":[{"environment":{"skills":[{"skill_id":"skill_1"},{"skill_id":"pptx"}]}}]}`:                                              "skill_1",
		`{"voice":{"id":"voice_1"},"x":{"voice":"voice_2"},"y":{"voice":"alloy"},"z":{"voice":{"id":"v3"}}}`:                               "voice_1 voice_2",
		`{"voice":{"id":"voice_1"}}`:                                                                                                       "voice_1", `{"voice":{"id":"v\u006fice_1"}}`: "voice_1", `{"video":{"id":"video_1"}}`: "video_1", `{"consent":"cons_1"}`: "cons_1", `{"consent":"yes","video":"a.mp4"}`: "",
		`{"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/a?x"}},{"file_data":{"file_uri":"files/b"}}]}]}`:       "files/a files/b",
		`{"parts":[{"fileData":{"fileUri":"gs://bucket/files/a"}},{"fileData":{"fileUri":"https://x.test/files/a"}},{"fileData":{"fileUri":"https://youtu.be/v1"}}]}`: "gs://bucket/files/a",
		`{"cachedContent":"cachedContents/a"}`:              "cachedContents/a",
		`{"file_id":null,"assistant_id":"","file_id2":"x"}`: "",
	} {
		found, err := IDsIn([]byte(body))
		var ids []string
		for _, f := range found {
			ids = append(ids, f.ID)
		}
		if got := strings.Join(ids, " "); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", body, got, err, want)
		}
		if want != "" && !reference.MayNameObjects([]byte(body)) {
			t.Errorf("%s: not looked at", body)
		}
	}
	if reference.MayNameObjects([]byte(`{"model":"m","messages":[{"role":"user","content":"Hello, a_b \n"}]}`)) {
		t.Error("a plain conversation is walked")
	}
	if _, err := IDsIn([]byte(`{"file_ids":["` + strings.Repeat(`x","`, maxIDs+1) + `y"]}`)); err == nil {
		t.Error("too many ids are taken")
	}
}

func TestThingsOfAnswers(t *testing.T) {
	for _, c := range []struct {
		answer string
		made   bool
		want   []string
	}{
		{`{"id":"f1","object":"file"}`, true, []string{"f1"}},
		{`{"id":"f1","object":"file"}`, false, nil},
		{`{"id":"b1","object":"batch","output_file_id":"o","error_file_id":null}`, false, []string{"o"}},
		{`{"id":"j","result_files":["a","b",1],"fine_tuned_model":"ft:x"}`, true, []string{"j", "a", "b", "ft:x"}},
		{`{"id":"r","object":"thread.run","thread_id":"t"}`, true, []string{"r", "t"}},
		{`{"id":"u","object":"upload","file":{"id":"f","object":"file"}}`, false, []string{"f"}},
		{`{"file":{"name":"files/abc","uri":"https://x"}}`, true, []string{"abc", "files/abc"}},
		{`{"id":"a","object":"assistant","name":"x/file-of-another"}`, true, []string{"a"}},
		{`[]`, true, nil},
		{`not JSON`, true, nil},
	} {
		got := CreatedIDs([]byte(c.answer), c.made)
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.answer, got, c.want)
		}
	}
}

// FuzzStoredPath: a path that names a thing in any reading is never taken for one
// that names nothing.
func FuzzStoredPath(f *testing.F) {
	for _, s := range []string{"/files/f1", "/files%2Ff1", "//files//f1", "/a;b/files;c/f1", `/files\f1`, "/x/../files/f1", "/%zz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		s := PathOf(path)
		lower := strings.ToLower(path)
		for _, part := range strings.Split(lower, "/") {
			if part == "files" && s.Collection == "" {
				t.Errorf("%q is taken for %+v", path, s)
			}
		}
		if s.ID != "" && s.Collection == "" {
			t.Errorf("%q: an id without a Collection: %+v", path, s)
		}
	})
}

func TestWhatToolsAnswerNamesNothing(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"contents":[{"parts":[{"functionResponse":{"name":"f","response":{"file_id":"x"}}},{"functionCall":{"args":{"thread_id":"y"}}}]}]}`: 0,
		`{"toolResponse":{"functionResponses":[{"id":"1","response":{"conversation_id":"z"}}]}}`:                                              0,
		`{"response":{"tools":[{"vector_store_ids":["vs_1","vs_2"]}]}}`:                                                                       2,
	} {
		if ids, err := IDsIn([]byte(body)); err != nil || len(ids) != want {
			t.Errorf("%s: %v, %v", body, ids, err)
		}
	}
}

func TestIDsOfRowsAreThoseOfTheirBodies(t *testing.T) {
	t.Parallel()
	for row, want := range map[string]int{
		`{"custom_id":"a","body":{"input":[{"content":[{"file_id":"f1"}]}]}}`:              2, // found in the row and in its body
		`{"custom_id":"a","body":{"input":{"file_id":"f1"}}}`:                              1,
		`{"custom_id":"a","body":{"messages":[{"content":"file_id"}],"metadata":{"f":1}}}`: 0,
	} {
		if ids, err := IDsInRow([]byte(row)); err != nil || len(ids) != want {
			t.Errorf("%s: %v, %v", row, ids, err)
		}
	}
	if _, err := IDsInRow([]byte(`{"file_id":"a"`)); err == nil {
		t.Error("a row that is not JSON is accepted")
	}
}
