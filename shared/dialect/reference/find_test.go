package reference

import (
	"fmt"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{`{"model":"m","input":[{"content":[{"type":"input_file","file_id":"file-1"}]}]}`, `model model=m; input[0].content[0].file_id file=file-1 +`},
		{`{"previous_response_id":"resp_1","conversation":{"id":"conv_1"}}`, `previous_response_id response=resp_1 +; conversation.id conversation=conv_1 +`},
		{`{"conversation":"auto","container":{"type":"auto"},"tools":[{"type":"code_interpreter","container":"cntr_1"}]}`, `tools[0].container container=cntr_1 +`},
		{`{"container":{"id":"container_1","skills":[{"skill_id":"skill_1"},{"skill_id":"pptx"}]}}`, `container.id container=container_1 +; container.skills[0].skill_id skill=skill_1 +`},
		{`{"thread":{"type":"continue","previous_message_id":"msg_1"}}`, `thread.previous_message_id message=msg_1 +`},
		{`{"prompt":{"id":"pmpt_1","variables":{"x":"y"}}}`, `prompt.id prompt=pmpt_1 +`},
		{
			`{"tools":[{"file_search":{"file_search_store_names":["fileSearchStores/a"]}},{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/b"]}}]}`,
			`tools[0].file_search.file_search_store_names[0] vector store=fileSearchStores/a +; tools[1].fileSearch.fileSearchStoreNames[0] vector store=fileSearchStores/b +`,
		},
		{
			`{"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc?x"}},{"file_data":{"file_uri":"gs://b/o"}}]}],"cached_content":"cachedContents/1"}`,
			`contents[0].parts[0].fileData.fileUri file=files/abc +; contents[0].parts[1].file_data.file_uri storage object=gs://b/o +; cached_content cached content=cachedContents/1 +`,
		},
		{`{"input":{"type":"document","uri":"files/abc"},"previous_interaction_id":"i1"}`, `input.uri file=files/abc +; previous_interaction_id interaction=i1 +`},
		{`{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://x/y.png"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}]}`, `messages[0].content[0].source.url url=https://x/y.png +`},
		{`{"source":{"type":"file_id","id":"file-1"}}`, `source file=file-1 +`},
		{`{"data_source":{"source":{"type":"stored_completions"},"model":"m"}}`, `data_source.source response=stored_completions +; data_source.model model=m`},
		{`{"voice":"alloy","audio":{"voice":{"id":"voice_1"}},"messages":[{"audio":{"id":"audio_1"}}]}`, `audio.voice.id voice=voice_1; messages[0].audio.id audio=audio_1 +`},
		{`{"messages":[{"tool_calls":[{"arguments":{"file_id":"x"}}],"content":[{"type":"tool_use","input":{"file_id":"x"}}]}],"metadata":{"file_id":"x"},"tools":[{"parameters":{"file_id":"x"},"input_schema":{"file_id":"x"}}]}`, ``},
		{`{"contents":[{"parts":[{"functionResponse":{"response":{"fileUri":"files/no"},"parts":[{"fileData":{"fileUri":"files/yes"}}]}}]}]}`, `contents[0].parts[0].functionResponse.parts[0].fileData.fileUri file=files/yes +`},
		{
			`{"models":["a","b"],"requests":[{"model":"models/c"}],"tools":[{"model":"d"}],"modelId":"e","agent":{"model":{"id":"f"}},"fallbacks":[{"model":"g"}]}`,
			`models[0] model=a; models[1] model=b; requests[0].model model=models/c; tools[0].model model=d; modelId model=e; agent.model.id model=f; fallbacks[0].model model=g`,
		},
		{`{"File_ID":"file-1","fileId":"file-2","f\u0069le_id":"file-3"}`, `File_ID file=file-1 +; fileId file=file-2 +; file_id file=file-3 +`},
		{`{"filename":"files/report.pdf","parameters":{"storageUri":"gs://b/o"}}`, `parameters.storageUri storage object=gs://b/o`},
		{
			`{"files":[{"uri":"/files/a"},{"uri":"v1beta/files/b"},{"uri":" files/c "},{"uri":"/v1//files/d/"},{"uri":"v1beta/files/A b"},{"uri":"generativelanguage.googleapis.com/v1beta/files/e"}]}`,
			`files[0].uri file=files/a +; files[1].uri file=files/b +; files[2].uri file=files/c +; files[3].uri file=files/d +; files[5].uri file=generativelanguage.googleapis.com/v1beta/files/e +`,
		},
		{`{"image_url":"HTTPS://generativelanguage.googleapis.com:443/v1beta//files/abc"}`, `image_url file=HTTPS://generativelanguage.googleapis.com:443/v1beta//files/abc +`},
	} {
		found, err := Find([]byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
		}
		var got []string
		objects := false
		for _, r := range found {
			objects = objects || r.Object()
			s := fmt.Sprintf("%s %s=%s", r.Field, r.Kind, r.ID)
			if r.Context {
				s += " +"
			}
			got = append(got, s)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.body, strings.Join(got, "; "), c.want)
		}
		if objects && !MayNameObjects([]byte(c.body)) {
			t.Errorf("%s: MayNameObjects returns false", c.body)
		}
	}
	for _, body := range []string{`{"file_id":"a"`, `{"file_id":"a"} x`, `not JSON`} {
		if _, err := Find([]byte(body)); err == nil {
			t.Errorf("%s is accepted", body)
		}
	}
}

func TestTokensAreHashed(t *testing.T) {
	t.Parallel()
	found, err := Find([]byte(`{"setup":{"session_resumption":{"handle":"secret"}},"continuation_token":"secret"}`))
	if err != nil || len(found) != 2 || found[0].ID != Hash("secret") || found[1].ID != found[0].ID || strings.Contains(found[0].ID, "secret") {
		t.Errorf("%v %v", found, err)
	}
}

// Every row of the table finds its field in each spelling, and MayNameObjects does not
// hide a body from Find.
func TestEveryRowIsFound(t *testing.T) {
	t.Parallel()
	spellings := []func(string) string{
		func(s string) string { return s },
		strings.ToUpper,
		func(s string) string { return s[:1] + "_" + s[1:] },
		func(s string) string { return fmt.Sprintf(`\u%04x`, s[0]) + s[1:] },
	}
	for key, row := range fields {
		if row.kind == "" {
			continue
		}
		value := "some-id"
		if row.form == address {
			value = "gs://bucket/object"
		}
		if len(row.prefixes) > 0 {
			value = row.prefixes[0] + "1"
		}
		parent, name, nested := strings.Cut(key, ".")
		for _, spell := range spellings {
			for _, space := range []string{"", " ", "\n\t "} {
				body := fmt.Sprintf(`{"%s"%s:%s"%s"}`, spell(parent), space, space, value)
				if nested {
					body = fmt.Sprintf(`{"%s"%s: {"%s":"%s"}}`, spell(parent), space, spell(name), value)
				}
				found, err := Find([]byte(body))
				if err != nil || len(found) == 0 {
					t.Errorf("%s is not found: %v", body, err)
					continue
				}
				if found[0].Object() && !MayNameObjects([]byte(body)) {
					t.Errorf("%s: MayNameObjects returns false", body)
				}
			}
		}
	}
	if MayNameObjects([]byte(`{"model":"m","messages":[{"role":"user","content":"a \"file_id\": in text, file_id: b"}]}`)) {
		t.Error("text is taken for a field")
	}
}

func TestKeysAreCanonical(t *testing.T) {
	t.Parallel()
	for key := range fields {
		if canonical(key) != key {
			t.Errorf("%s is not canonical", key)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add(`{"input":[{"file_id":"x"}],"source":{"type":"file_id","id":"y"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		found, err := Find([]byte(body))
		for _, r := range found {
			if err == nil && r.Object() && !MayNameObjects([]byte(body)) {
				t.Errorf("%q names %v", body, r)
			}
		}
	})
}

func BenchmarkMayNameObjects(b *testing.B) {
	body := []byte(`{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"Some words, and others: \"quoted\": as in text. "},`, 1200) + `{}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if MayNameObjects(body) {
			b.Fatal("wrong")
		}
	}
}
