package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"gateway/local/mockprovider"
	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/relay/response"
)

var updateShapes = flag.Bool("update-shapes", false, "rewrite shared/dialect/SHAPES.md")

const shapesFile = "../shared/dialect/SHAPES.md"

// shape is one of the six in which clients ask and providers are called.
type shape struct {
	name   string
	client chat.Provider // reads what clients of the shape are answered
	// As a client: the path for a model, and a body of parts in the user's message.
	path func(model string, stream bool) string
	body func(model, text string, image, stream bool) string
	// As a provider: the model with its saved provider, headers, and how a path begins
	// or ends that the request reaches it by.
	model   string
	headers []string
	reached string
}

const shapeTool = `"name":"get_weather","description":"The weather"`
const shapeParameters = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`

// when gives its text where it holds.
func when(holds bool, text string) string {
	if holds {
		return text
	}
	return ""
}

func shapes() []shape {
	const png = tinyPNG
	fixed := func(path string) func(string, bool) string { return func(string, bool) string { return path } }
	return []shape{
		{
			name: "OpenAI chat", client: openai.Chat{}, path: fixed("/chat/completions"), model: "@together/llama-3.3-70b", reached: "/chat/completions",
			body: func(model, text string, image, stream bool) string {
				return fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":[{"type":"text","text":%q}%s]}],"tools":[{"type":"function","function":{%s,"parameters":%s}}]%s}`,
					model, stream, text, when(image, `,{"type":"image_url","image_url":{"url":"data:image/png;base64,`+png+`"}}`), shapeTool, shapeParameters, when(stream, `,"stream_options":{"include_usage":true}`))
			},
		},
		{
			name: "OpenAI responses", client: responses.Responses{}, path: fixed("/responses"), model: "gpt-5.6", reached: "/responses",
			headers: []string{"X-Gateway-Provider", "openai", "Authorization", "Bearer mock-key"},
			body: func(model, text string, image, stream bool) string {
				return fmt.Sprintf(`{"model":%q,"stream":%t,"input":[{"role":"user","content":[{"type":"input_text","text":%q}%s]}],"tools":[{"type":"function",%s,"parameters":%s,"strict":false}]}`,
					model, stream, text, when(image, `,{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,`+png+`"}`), shapeTool, shapeParameters)
			},
		},
		{
			name: "Anthropic messages", client: anthropic.Messages{}, path: fixed("/messages"), model: "@mock-anthropic/claude-sonnet-4-5", reached: "/messages",
			body: func(model, text string, image, stream bool) string {
				return fmt.Sprintf(`{"model":%q,"max_tokens":200,"stream":%t,"messages":[{"role":"user","content":[{"type":"text","text":%q}%s]}],"tools":[{%s,"input_schema":%s}]}`,
					model, stream, text, when(image, `,{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+png+`"}}`), shapeTool, shapeParameters)
			},
		},
		{
			name: "Gemini", client: gemini.Generate{}, model: "@google/gemini-2.5-flash", reached: ":",
			path: func(model string, stream bool) string {
				if stream {
					return "/v1beta/models/" + model + ":streamGenerateContent?alt=sse"
				}
				return "/v1beta/models/" + model + ":generateContent"
			},
			body: func(_, text string, image, _ bool) string {
				return fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":%q}%s]}],"tools":[{"functionDeclarations":[{%s,"parameters":%s}]}],"generationConfig":{"maxOutputTokens":200}}`,
					text, when(image, `,{"inlineData":{"mimeType":"image/png","data":"`+png+`"}}`), shapeTool, shapeParameters)
			},
		},
		{
			name: "Bedrock Converse", client: converse.Converse{}, model: "@bedrock/" + bedrockClaude, reached: "/converse",
			path: func(model string, stream bool) string {
				return "/model/" + url.PathEscape(model) + "/converse" + when(stream, "-stream")
			},
			body: func(_, text string, image, _ bool) string {
				return fmt.Sprintf(`{"messages":[{"role":"user","content":[{"text":%q}%s]}],"toolConfig":{"tools":[{"toolSpec":{%s,"inputSchema":{"json":%s}}}]},"inferenceConfig":{"maxTokens":200}}`,
					text, when(image, `,{"image":{"format":"png","source":{"bytes":"`+png+`"}}}`), shapeTool, shapeParameters)
			},
		},
		{
			name: "Cohere", client: cohere.Chat{}, path: fixed("/v2/chat"), model: "@cohere/command-a-vision-07-2025", reached: "/v2/chat",
			body: func(model, text string, image, stream bool) string {
				return fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":[{"type":"text","text":%q}%s]}],"tools":[{"type":"function","function":{%s,"parameters":%s}}]}`,
					model, stream, text, when(image, `,{"type":"image_url","image_url":{"url":"data:image/png;base64,`+png+`"}}`), shapeTool, shapeParameters)
			},
		},
	}
}

// shapeColumns are what each pair is asked for.
var shapeColumns = []struct {
	name, text    string
	image, stream bool
	call          bool
}{
	{name: "plain", text: "mock: no-tools say=Hello there\nHi"},
	{name: "stream", text: "mock: no-tools say=Hello there\nHi", stream: true},
	{name: "tools", text: "What is the weather?", call: true},
	{name: "streamed tools", text: "What is the weather?", stream: true, call: true},
	{name: "image", text: "mock: no-tools say=Hello there\nWhat is this?", image: true},
	{name: "streamed image", text: "mock: no-tools say=Hello there\nWhat is this?", image: true, stream: true},
}

// startShapes starts a gateway with a provider of every shape.
func startShapes(t *testing.T) (*running, *mockprovider.Server) {
	t.Helper()
	r, google := startGoogle(t)
	r.divert()
	r.bedrock("bedrock", bedrockKeys)
	r.wired("cohere", "", "")
	r.save("together", `"ai_provider_id":"together-ai","key":"mock-key","configurations":{"custom_host":"`+r.mockBase()+`"}`)
	return r, google
}

// TestEveryShapeToEveryShape asks every shape of provider in every shape of client.
//
//lane:exhaustive
func TestEveryShapeToEveryShape(t *testing.T) {
	t.Parallel()
	r, google := startShapes(t)
	var out bytes.Buffer
	out.WriteString("# Who may ask whom\n\nWritten by: go test ./local -run EveryShape -update-shapes\n\nRows are what clients speak, at their own paths; columns what providers do. In each cell:\nplain, stream, tools, streamed tools, image, streamed image; y is one that was answered.\n\n|  |")
	all := shapes()
	for _, p := range all {
		out.WriteString(" " + p.name + " |")
	}
	out.WriteString("\n|" + strings.Repeat("---|", len(all)+1) + "\n")
	requests := 0
	for _, c := range all {
		out.WriteString("| " + c.name + " |")
		for _, p := range all {
			cell := ""
			for _, col := range shapeColumns {
				requests++
				where := fmt.Sprintf("%s to %s, %s", c.name, p.name, col.name)
				got := r.call("POST", c.path(p.model, col.stream), c.body(p.model, col.text, col.image, col.stream), p.headers...)
				mock := r.mock
				if p.name == "Gemini" {
					mock = google
				}
				if bad := shapeAnswered(&c, &p, mock, &got, col.stream, col.call, col.image); bad != "" {
					t.Errorf("%s: %s: %d %.700s", where, bad, got.status, got.body)
					cell += "-"
				} else {
					cell += "y"
				}
			}
			out.WriteString(" " + cell + " |")
		}
		out.WriteString("\n")
	}
	for _, rec := range r.byTime(requests) {
		if !rec.Usage.IsReported() || rec.Usage.Estimated || rec.Usage.OutputTokens() == 0 {
			t.Errorf("%s of %s is booked with %+v", rec.Path, rec.Model, rec.Usage)
		}
	}
	if *updateShapes {
		if err := os.WriteFile(shapesFile, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(shapesFile); err != nil || !bytes.Equal(want, out.Bytes()) {
		t.Errorf("%s is stale: %v", shapesFile, err)
	}
}

// shapeAnswered tells what is wrong with a response; "" when nothing is.
func shapeAnswered(c, p *shape, mock *mockprovider.Server, got *reply, stream, call, image bool) string {
	if got.status != http.StatusOK {
		return "refused"
	}
	var r *chat.Response
	var err error
	if stream {
		r, _, _, err = response.Collect(c.client.NewStreamDecoder(&chat.Traits{}), []byte(got.body))
	} else {
		r, err = c.client.DecodeResponse([]byte(got.body), &chat.Traits{})
	}
	if err != nil {
		return err.Error()
	}
	if kind := got.header.Get("Content-Type"); stream && strings.Contains(kind, "json") || !stream && !strings.Contains(kind, "json") {
		return "it comes as " + kind
	}
	text, calls := "", ""
	for _, part := range r.Choices[0].Parts {
		if part.Kind == chat.Text {
			text += part.Text
		}
		if part.Call != nil {
			calls += part.Call.Name
			if !json.Valid([]byte(part.Call.Arguments)) {
				return "its arguments are no JSON"
			}
		}
	}
	switch last := mock.Requests(1); {
	case call && calls != "get_weather":
		return "it calls " + calls
	case !call && text != "Hello there":
		return "it says " + text
	case !r.Usage.IsReported():
		return "it tells no usage"
	case len(last) != 1 || !strings.Contains(last[0].Path, p.reached):
		return "another was asked"
	case image && !bytes.Contains(last[0].Body, []byte(tinyPNG)):
		return "the image did not arrive"
	}
	return ""
}
