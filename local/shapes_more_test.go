package main

import (
	"strings"
	"testing"
)

// Errors come in the shape of whoever asks, streams of other shapes too; a model that a
// config puts in place of the path's is the one that is called; what a provider keeps is
// asked for by its workspace alone although the conversation goes through as it is.
func TestNativeClientsAtTheEdges(t *testing.T) {
	t.Parallel()
	r, google := startGoogle(t)
	r.wired("cohere", "", "")
	const (
		request  = `{"contents":[{"role":"user","parts":[{"text":"mock: say=Hello there\nHi"}]}]}`
		generate = "/v1beta/models/%:generateContent"
		hi       = `"messages":[{"role":"user","content":[{"text":"Hi"}]}]`
	)
	at := func(path, model string) string { return strings.Replace(path, "%", model, 1) }
	for name, c := range map[string]struct {
		path, body string
		headers    []string
		status     int
		has        []string
	}{
		"Gemini's provider error":    {at(generate, "@mock/gpt-4o"), `{"contents":[{"parts":[{"text":"mock: status=429\nx"}]}]}`, nil, 429, []string{`"error":{`, `"code":429`, `"status":"RESOURCE_EXHAUSTED"`}},
		"Gemini without contents":    {at(generate, "@mock/gpt-4o"), `{}`, nil, 400, []string{`"error":{`, `contents is required`, `"status":"INVALID_ARGUMENT"`}},
		"Gemini, contents a text":    {at(generate, "@mock/gpt-4o"), `{"contents":"x"}`, nil, 400, []string{`contents must be`}},
		"Gemini, a stream as a list": {"/v1beta/models/@mock/gpt-4o:streamGenerateContent", request, nil, 400, []string{`alt must be sse`}},
		"Gemini, half a body":        {at(generate, "@mock/gpt-4o"), `{"contents":[`, nil, 400, []string{`"error":{`}},
		"Gemini, no such slug":       {at(generate, "@nobody/gpt-4o"), request, nil, 400, []string{`There is no provider @nobody`}},
		"Gemini, half a slug":        {at(generate, "@mock"), request, nil, 400, []string{`@slug/id`}},
		"Gemini, no provider":        {at(generate, "gpt-4o"), request, nil, 400, []string{`"error":{`}},
		"Bedrock's error":            {"/model/%40mock%2Fgpt-4o/converse", `{"messages":[{"role":"user","content":[{"text":"mock: status=503\nx"}]}]}`, nil, 503, []string{`{"__type":"ServiceUnavailableException","message":"`}},
		"Bedrock, wrong type":        {"/model/%40mock%2Fgpt-4o/converse", `{` + hi + `,"inferenceConfig":[]}`, nil, 400, []string{`inferenceConfig must be`}},
		"Bedrock, no messages":       {"/model/%40mock%2Fgpt-4o/converse", `{"system":[]}`, nil, 400, []string{`messages is required`}},
		"Bedrock, not UTF-8":         {"/model/%40mock%2Fgpt-4o/converse", "{\"messages\":\"\xff\"}", nil, 400, []string{`{"__type":"ValidationException","message":"`}},
		"Cohere without a model":     {"/v2/chat", `{"messages":[]}`, []string{"X-Gateway-Provider", "@mock"}, 400, []string{`model is required`}},
		"another model, same shape": {at(generate, "gemini-2.5-pro"), request, []string{"X-Gateway-Config", `{"provider":"@google","override_params":{"model":"gemini-2.5-flash"}}`}, 200,
			[]string{`"modelVersion":"gemini-2.5-flash"`, `Hello there`}},
		"another model, another shape": {at(generate, "gemini-2.5-pro"), request, []string{"X-Gateway-Config", `{"provider":"@mock","override_params":{"model":"gpt-4o"}}`}, 200, []string{`"modelVersion":"gpt-4o"`}},
		"the second of two shapes": {at(generate, "gpt-4o"), request, []string{"X-Gateway-Config", `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@google","override_params":{"model":"does-not-exist"}},{"provider":"@mock"}]}`}, 200,
			[]string{`Hello there`, `"modelVersion":"gpt-4o"`}},
	} {
		got := r.call("POST", c.path, c.body, c.headers...)
		for _, part := range c.has {
			if got.status != c.status || !strings.Contains(strings.ReplaceAll(got.body, `": `, `":`), part) {
				t.Errorf("%s: %d %.400s, want %d %s", name, got.status, got.body, c.status, part)
			}
		}
	}
	google.Reset()
	odd := `{ "contents" : [ {"role":"user", "parts":[{"text":"Hi"}]} ] , "unknownToUs" : {"a":1.50} }`
	r.call("POST", at(generate, "@google/gemini-2.5-flash")+"?fields=x", odd)
	if got := google.Requests(1); len(got) != 1 || string(got[0].Body) != odd || got[0].Path != "/v1beta/models/gemini-2.5-flash:generateContent" {
		t.Errorf("the same shape arrived as %+v", got)
	}
}

// TestNativeConversationsNameTheirWorkspacesThings: a cached content of another
// workspace is missing, whether its model is named with the provider or not.
func TestNativeConversationsNameTheirWorkspacesThings(t *testing.T) {
	t.Parallel()
	r := start(t)
	_, host, _ := googleMock(t)
	r.admin("POST", "/integrations", `{"name":"Common","slug":"common","ai_provider_id":"google","key":"mock-google","configurations":{"custom_host":"`+host+`"}}`)
	r.admin("PUT", "/integrations/common/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	for _, model := range []string{"gemini-2.5-flash", "@common/gemini-2.5-flash"} {
		got := r.call("POST", "/v1beta/models/"+model+":generateContent", `{"contents":[{"parts":[{"text":"Hi"}]}],"cachedContent":"cachedContents/of-others"}`, "X-Gateway-Provider", "@common")
		if got.status != 404 || !strings.Contains(got.body, "of-others") {
			t.Errorf("%s: %d %s", model, got.status, got.body)
		}
	}
}

// TestThreadsWithoutAnthropic asks hosts of Claude models that speak the Messages shape but keep
// no threads, and one of another shape: nothing is sent, and the client learns that it must send
// the whole conversation.
func TestThreadsWithoutAnthropic(t *testing.T) {
	t.Parallel()
	r, mock := startGoogle(t)
	before := len(mock.Requests(1000))
	for _, model := range []string{"@vertex/anthropic.claude-sonnet-4-5", "@google/gemini-2.5-flash"} {
		for thread, want := range map[string]string{
			`{"type":"create"}`: `"details":{"error_code":"thread_unsupported_request","unsupported":["thread"]}`,
			`{"type":"continue","previous_message_id":"msg_1"}`: `"details":{"error_code":"thread_not_found"}`,
		} {
			got := r.call("POST", "/messages", `{"model":"`+model+`","max_tokens":9,"thread":`+thread+`,"messages":[{"role":"user","content":"Hi"}]}`)
			if (got.status != 400 && got.status != 404) || !strings.Contains(string(got.body), want) {
				t.Errorf("%s, %s: %d %s", model, thread, got.status, got.body)
			}
		}
	}
	if after := len(mock.Requests(1000)); after != before {
		t.Errorf("%d requests were sent", after-before)
	}
}
