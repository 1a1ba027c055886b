package wireformat

import (
	"encoding/json"
	"reflect"
	"testing"
)

// pairs are equal values in the three formats.
var pairs = []struct {
	name          string
	kind          Kind
	v1, old, rest string
}{
	{"message", Send,
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a","metadata":{"n":1.50}},{"data":{"x":1}},{"url":"https://a","mediaType":"image/png","filename":"f"},{"raw":"AA=="}],"x":1},"configuration":{"acceptedOutputModes":["text"],"historyLength":3,"returnImmediately":true,"taskPushNotificationConfig":{"id":"c","url":"https://b","token":"t","authentication":{"scheme":"Bearer","credentials":"s"}}},"metadata":{"a":1}}`,
		`{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"a","metadata":{"n":1.50}},{"kind":"data","data":{"x":1}},{"kind":"file","file":{"uri":"https://a","mimeType":"image/png","name":"f"}},{"kind":"file","file":{"bytes":"AA=="}}],"x":1},"configuration":{"acceptedOutputModes":["text"],"historyLength":3,"blocking":false,"pushNotificationConfig":{"id":"c","url":"https://b","token":"t","authentication":{"schemes":["Bearer"],"credentials":"s"}}},"metadata":{"a":1}}`,
		`{"request":{"messageId":"m","role":"ROLE_USER","content":[{"text":"a","metadata":{"n":1.50}},{"data":{"data":{"x":1}}},{"file":{"fileWithUri":"https://a","mimeType":"image/png","name":"f"}},{"file":{"fileWithBytes":"AA=="}}],"x":1},"configuration":{"acceptedOutputModes":["text"],"historyLength":3,"blocking":false,"pushNotification":{"id":"c","url":"https://b","token":"t","authentication":{"schemes":["Bearer"],"credentials":"s"}}},"metadata":{"a":1}}`},
	{"answer of a task", Event,
		`{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"role":"ROLE_AGENT","parts":[{"text":"a"}]}},"artifacts":[{"artifactId":"a","parts":[{"text":"b"}]}],"history":[{"role":"ROLE_USER","parts":[]}]}}`,
		`{"kind":"task","id":"t","contextId":"c","status":{"state":"input-required","message":{"kind":"message","role":"agent","parts":[{"kind":"text","text":"a"}]}},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"b"}]}],"history":[{"kind":"message","role":"user","parts":[]}]}`,
		`{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"role":"ROLE_AGENT","content":[{"text":"a"}]}},"artifacts":[{"artifactId":"a","parts":[{"text":"b"}]}],"history":[{"role":"ROLE_USER","content":[]}]}}`},
	{"answer of a message", Event,
		`{"message":{"role":"ROLE_AGENT","parts":[{"text":"a"}]}}`,
		`{"kind":"message","role":"agent","parts":[{"kind":"text","text":"a"}]}`,
		`{"msg":{"role":"ROLE_AGENT","content":[{"text":"a"}]}}`},
	{"status", Event,
		`{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}`,
		`{"kind":"status-update","taskId":"t","contextId":"c","status":{"state":"completed"},"final":true}`,
		`{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"final":true}}`},
	{"artifact", Event,
		`{"artifactUpdate":{"taskId":"t","artifact":{"parts":[{"text":"a"}]},"append":true}}`,
		`{"kind":"artifact-update","taskId":"t","artifact":{"parts":[{"kind":"text","text":"a"}]},"append":true}`,
		`{"artifactUpdate":{"taskId":"t","artifact":{"parts":[{"text":"a"}]},"append":true}}`},
	{"task", Task, `{"id":"t","status":{"state":"TASK_STATE_UNSPECIFIED"}}`, `{"kind":"task","id":"t","status":{"state":"unknown"}}`, `{"id":"t","status":{"state":"TASK_STATE_UNSPECIFIED"}}`},
	{"tasks", Tasks, `{"tasks":[{"id":"t"}],"totalSize":1}`, `{"tasks":[{"kind":"task","id":"t"}],"totalSize":1}`, `{"tasks":[{"id":"t"}],"totalSize":1}`},
	{"push", PushConfig, `{"taskId":"t","id":"c","url":"https://a"}`, `{"taskId":"t","pushNotificationConfig":{"id":"c","url":"https://a"}}`, `{"name":"tasks/t/pushNotificationConfigs/c","pushNotificationConfig":{"id":"c","url":"https://a"}}`},
	{"pushes", Pushes, `{"configs":[{"taskId":"t","id":"c","url":"u"}]}`, `[{"taskId":"t","pushNotificationConfig":{"id":"c","url":"u"}}]`, `{"configs":[{"name":"tasks/t/pushNotificationConfigs/c","pushNotificationConfig":{"id":"c","url":"u"}}]}`},
	{"one push", PushRef, `{"taskId":"t","id":"c"}`, `{"id":"t","pushNotificationConfigId":"c"}`, `{"id":"t","pushNotificationConfigId":"c"}`},
	{"pushes of", PushList, `{"taskId":"t"}`, `{"id":"t"}`, `{"id":"t"}`},
}

func TestConvertRoundTripsAllFormats(t *testing.T) {
	t.Parallel()
	for _, p := range pairs {
		forms := map[Format]string{V1: p.v1, Old: p.old, OldREST: p.rest}
		for from, raw := range forms {
			for to, want := range forms {
				v, err := Read([]byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				before, _ := json.Marshal(v)
				got, err := json.Marshal(Convert(from, to, p.kind, v))
				if err != nil {
					t.Fatal(err)
				}
				if !same(t, string(got), want) {
					t.Errorf("%s, %d to %d:\n%s\nwant\n%s", p.name, from, to, got, want)
				}
				if after, _ := json.Marshal(v); string(after) != string(before) {
					t.Errorf("%s, %d to %d: the value itself was changed", p.name, from, to)
				}
			}
		}
	}
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := Read([]byte(a))
	if err != nil {
		t.Fatal(err)
	}
	y, err := Read([]byte(b))
	if err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

func TestFormsThatAreNotKnownStay(t *testing.T) {
	t.Parallel()
	for _, v := range []any{nil, "a", json.Number("1"), []any{}, Object{"task": "x", "parts": 1}, Object{"tasks": []any{1, nil}}} {
		for kind := Opaque; kind <= Pushes; kind++ {
			for _, to := range []Format{V1, Old, OldREST} {
				Convert(Old, to, kind, v)
				Convert(V1, to, kind, v)
			}
		}
	}
	got, _ := json.Marshal(Convert(V1, Old, Send, Object{"message": Object{"parts": []any{Object{"data": []any{1}}}}}))
	if string(got) != `{"message":{"kind":"message","parts":[{"data":{"value":[1]},"kind":"data"}]}}` {
		t.Errorf("%s", got)
	}
}

// FuzzFormats converts arbitrary values to every format and back.
func FuzzFormats(f *testing.F) {
	for _, p := range pairs {
		f.Add([]byte(p.v1), uint8(p.kind))
		f.Add([]byte(p.old), uint8(p.kind))
		f.Add([]byte(p.rest), uint8(p.kind))
	}
	f.Fuzz(func(t *testing.T, raw []byte, kind uint8) {
		v, err := Read(raw)
		if err != nil {
			return
		}
		for _, from := range []Format{V1, Old, OldREST} {
			for _, to := range []Format{V1, Old, OldREST} {
				if _, err := json.Marshal(Convert(from, to, Kind(kind%uint8(Pushes+1)), v)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
