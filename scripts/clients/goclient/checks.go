// Command goclient uses a running gateway through the Go client libraries of OpenAI and
// Anthropic, as a user's program would. It knows nothing of the gateway's code. GATEWAY_URL
// (ends in /v1) and GATEWAY_KEY (a workspace key) specify which gateway to call; goclient exits
// with 1 if a check fails. goclient promlint checks the metrics on its standard input by the rules
// of Prometheus instead.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	_ "github.com/oapi-codegen/runtime" // of the client that testdata/generated uses
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// gateway is the gateway to call: url ends in /v1, key is a workspace key.
type gateway struct{ url, key string }

// target is a saved provider with one of its models.
type target struct{ provider, model string }

// targets are the two formats that the built-in mock provider speaks.
var targets = []target{{"@mock", "gpt-4o-mini"}, {"@mock-anthropic", "claude-sonnet-4-5"}}

// checks must all work with every target.
var checks = []struct {
	name string
	run  func(context.Context, gateway, target) error
}{
	{"chat", chat},
	{"stream", stream},
	{"tool loop", toolLoop},
	{"typed errors", typedErrors},
	{"embeddings", embeddings},
	{"operations", operations},
	{"kept things", kept},
	{"messages", messages},
	{"messages stream", messagesStream},
}

func (g gateway) openai(t target, more ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(g.url), option.WithAPIKey(g.key), option.WithMaxRetries(0), option.WithHeader("x-gateway-provider", t.provider),
	}, more...)...)
}

func ask(t target, text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: t.model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

func chat(ctx context.Context, g gateway, t target) error {
	client := g.openai(t)
	answer, err := client.Chat.Completions.New(ctx, ask(t, "mock: say=Hello from the mock"))
	if err != nil {
		return err
	}
	if len(answer.Choices) != 1 || answer.Choices[0].Message.Content != "Hello from the mock" || answer.Choices[0].FinishReason != "stop" {
		return fmt.Errorf("answered %s", answer.RawJSON())
	}
	if u := answer.Usage; u.CompletionTokens != 4 || u.TotalTokens != u.PromptTokens+4 {
		return fmt.Errorf("usage %s", u.RawJSON())
	}
	return nil
}

func stream(ctx context.Context, g gateway, t target) error {
	client := g.openai(t)
	p := ask(t, "mock: chunks=40")
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	s := client.Chat.Completions.NewStreaming(ctx, p)
	var acc openai.ChatCompletionAccumulator
	chunks := 0
	for s.Next() {
		chunks++
		if !acc.AddChunk(s.Current()) {
			return fmt.Errorf("chunk %d does not fit the others: %s", chunks, s.Current().RawJSON())
		}
	}
	if err := s.Err(); err != nil {
		return err
	}
	if len(acc.Choices) != 1 || acc.Choices[0].FinishReason != "stop" || acc.Usage.CompletionTokens != 40 || chunks < 40 {
		return fmt.Errorf("%d chunks, usage %+v, choices %+v", chunks, acc.Usage, acc.Choices)
	}
	return nil
}

var tools = []openai.ChatCompletionToolUnionParam{
	openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "get_weather", Parameters: openai.FunctionParameters{
		"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"},
	}}),
	openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "clock_now", Parameters: openai.FunctionParameters{
		"type": "object", "properties": map[string]any{},
	}}),
}

func toolLoop(ctx context.Context, g gateway, t target) error {
	client := g.openai(t)
	p := ask(t, "mock: parallel")
	p.Tools = tools
	first, err := client.Chat.Completions.New(ctx, p)
	if err != nil {
		return err
	}
	calls := first.Choices[0].Message.ToolCalls
	if len(calls) != 2 || calls[0].Function.Name != "get_weather" || calls[1].Function.Arguments != "{}" {
		return fmt.Errorf("calls %+v", calls)
	}
	p.Messages = append([]openai.ChatCompletionMessageParamUnion{openai.UserMessage("The weather and the time?")}, first.Choices[0].Message.ToParam())
	for _, c := range calls {
		p.Messages = append(p.Messages, openai.ToolMessage("result of "+c.Function.Name, c.ID))
	}
	second, err := client.Chat.Completions.New(ctx, p)
	if err != nil {
		return err
	}
	if got := second.Choices[0].Message.Content; got != "The tool says: result of get_weather result of clock_now" {
		return fmt.Errorf("after the results: %q", got)
	}
	return nil
}

func typedErrors(ctx context.Context, g gateway, t target) error {
	good, bad := g.openai(t), g.openai(t, option.WithAPIKey("nobody"))
	for _, c := range []struct {
		name   string
		client openai.Client
		params openai.ChatCompletionNewParams
		status int
	}{
		{"wrong key", bad, ask(t, "Hi"), 401},
		{"no messages", good, openai.ChatCompletionNewParams{Model: t.model, Messages: []openai.ChatCompletionMessageParamUnion{}}, 400},
		{"unknown model", good, ask(target{t.provider, "does-not-exist"}, "Hi"), 404},
		{"rate limit", good, ask(t, "mock: status=429 retry-after=3"), 429},
		{"failure", good, ask(t, "mock: status=500"), 500},
	} {
		_, err := c.client.Chat.Completions.New(ctx, c.params)
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != c.status || e.Message == "" {
			return fmt.Errorf("%s: %v, want status %d with a message", c.name, err, c.status)
		}
		if c.status == 429 && e.Response.Header.Get("Retry-After") != "3" {
			return fmt.Errorf("%s: retry-after %q", c.name, e.Response.Header.Get("Retry-After"))
		}
	}
	return nil
}

// embeddings are checked with the provider that has them.
func embeddings(ctx context.Context, g gateway, t target) error {
	if t.provider != "@mock" {
		return nil
	}
	client := g.openai(t)
	got, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: "text-embedding-3-small", Dimensions: openai.Int(32),
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a red fox", "a red dog"}},
	})
	if err != nil {
		return err
	}
	if len(got.Data) != 2 || len(got.Data[1].Embedding) != 32 || got.Usage.PromptTokens == 0 {
		return fmt.Errorf("got %s", got.RawJSON())
	}
	return nil
}

func (g gateway) anthropic(t target) anthropic.Client {
	return anthropic.NewClient(
		anthropicoption.WithBaseURL(g.url[:len(g.url)-len("/v1")]), anthropicoption.WithAuthToken(g.key),
		anthropicoption.WithMaxRetries(0), anthropicoption.WithHeader("x-gateway-provider", t.provider),
	)
}

func messageParams(t target, text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: anthropic.Model(t.model), MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

func messages(ctx context.Context, g gateway, t target) error {
	client := g.anthropic(t)
	answer, err := client.Messages.New(ctx, messageParams(t, "mock: say=Hello from the mock"))
	if err != nil {
		return err
	}
	if len(answer.Content) != 1 || answer.Content[0].Text != "Hello from the mock" || answer.StopReason != anthropic.StopReasonEndTurn || answer.Usage.OutputTokens != 4 {
		return fmt.Errorf("answered %s", answer.RawJSON())
	}
	_, err = client.Messages.New(ctx, messageParams(t, "mock: status=429 retry-after=3"))
	var e *anthropic.Error
	if !errors.As(err, &e) || e.StatusCode != 429 {
		return fmt.Errorf("rate limit: %v", err)
	}
	return nil
}

func messagesStream(ctx context.Context, g gateway, t target) error {
	client := g.anthropic(t)
	s := client.Messages.NewStreaming(ctx, messageParams(t, "mock: chunks=40"))
	var message anthropic.Message
	for s.Next() {
		if err := message.Accumulate(s.Current()); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		return err
	}
	if len(message.Content) != 1 || message.StopReason != anthropic.StopReasonEndTurn || message.Usage.OutputTokens != 40 {
		return fmt.Errorf("stream adds up to %+v", message)
	}
	return nil
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "promlint" {
		os.Exit(lint(os.Stdin))
	}
	g := gateway{url: os.Getenv("GATEWAY_URL"), key: os.Getenv("GATEWAY_KEY")}
	if g.url == "" || g.key == "" {
		fmt.Fprintln(os.Stderr, "GATEWAY_URL and GATEWAY_KEY must be set")
		os.Exit(2)
	}
	failed := 0
	for _, t := range targets {
		for _, c := range checks {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			if err := c.run(ctx, g, t); err != nil {
				failed++
				fmt.Printf("FAIL %s of %s: %v\n", c.name, t.provider, err)
			}
			cancel()
		}
	}
	fmt.Printf("%d checks, %d failures\n", len(targets)*len(checks), failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// lint checks metrics in the text format by the rules of Prometheus, and returns the exit code.
func lint(from io.Reader) int {
	problems, err := promlint.New(from).Lint()
	if err != nil {
		fmt.Println("FAIL", err)
		return 1
	}
	for _, p := range problems {
		fmt.Printf("FAIL %s: %s\n", p.Metric, p.Text)
	}
	return min(len(problems), 1)
}

func threadRun(ctx context.Context, client openai.Client) error {
	assistant, err := client.Beta.Assistants.New(ctx, openai.BetaAssistantNewParams{Model: "gpt-4o-mini"})
	if err != nil {
		return err
	}
	thread, err := client.Beta.Threads.New(ctx, openai.BetaThreadNewParams{Messages: []openai.BetaThreadNewParamsMessage{{
		Role: "user", Content: openai.BetaThreadNewParamsMessageContentUnion{OfString: openai.String("Hello")},
	}}})
	if err != nil {
		return err
	}
	s := client.Beta.Threads.Runs.NewStreaming(ctx, thread.ID, openai.BetaThreadRunNewParams{AssistantID: assistant.ID})
	text, last := "", ""
	for s.Next() {
		event := s.Current()
		if last = event.Event; last == "thread.message.delta" {
			for _, part := range event.AsThreadMessageDelta().Data.Delta.Content {
				text += part.Text.Value
			}
		}
	}
	if err := s.Err(); err != nil || text != "A threaded answer to Hello" || last != "thread.run.completed" {
		return fmt.Errorf("the run ended with %s, said %q: %v", last, text, err)
	}
	messages, err := client.Beta.Threads.Messages.List(ctx, thread.ID, openai.BetaThreadMessageListParams{})
	if err != nil || len(messages.Data) != 2 {
		return fmt.Errorf("messages: %v %v", messages, err)
	}
	_, err = client.Beta.Threads.Delete(ctx, thread.ID)
	return err
}

// operations are checked with the provider that has them: files, batches, moderations,
// images and sound.
func operations(ctx context.Context, g gateway, t target) error {
	if t.provider != "@mock" {
		return nil
	}
	client := g.openai(t)
	content := `{"custom_id":"one","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}}` + "\n"
	file, err := client.Files.New(ctx, openai.FileNewParams{File: openai.File(strings.NewReader(content), "rows.jsonl", "application/jsonl"), Purpose: openai.FilePurposeBatch})
	if err != nil {
		return err
	}
	resp, err := client.Files.Content(ctx, file.ID)
	if err != nil {
		return err
	}
	back, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(back) != content {
		return fmt.Errorf("the file came back as %q, %v", back, err)
	}
	batch, err := client.Batches.New(ctx, openai.BatchNewParams{
		InputFileID: file.ID, Endpoint: openai.BatchNewParamsEndpointV1ChatCompletions, CompletionWindow: openai.BatchNewParamsCompletionWindow24h,
	})
	if err != nil {
		return err
	}
	for range 2 {
		if batch, err = client.Batches.Get(ctx, batch.ID); err != nil {
			return err
		}
	}
	if batch.Status != openai.BatchStatusCompleted || batch.OutputFileID == "" {
		return fmt.Errorf("batch %s", batch.RawJSON())
	}
	if _, err := client.Files.Delete(ctx, file.ID); err != nil {
		return err
	}
	var missing *openai.Error
	if _, err := client.Files.Get(ctx, file.ID); !errors.As(err, &missing) || missing.StatusCode != 404 {
		return fmt.Errorf("a deleted file: %v", err)
	}
	return media(ctx, client)
}

func media(ctx context.Context, client openai.Client) error {
	verdict, err := client.Moderations.New(ctx, openai.ModerationNewParams{Input: openai.ModerationNewParamsInputUnion{OfString: openai.String("Hello")}})
	if err != nil || len(verdict.Results) != 1 || verdict.Results[0].Flagged {
		return fmt.Errorf("moderation: %v %v", verdict, err)
	}
	image, err := client.Images.Generate(ctx, openai.ImageGenerateParams{Prompt: "A fox", Model: "dall-e-3"})
	if err != nil || len(image.Data) != 1 || image.Data[0].URL == "" {
		return fmt.Errorf("image: %v %v", image, err)
	}
	resp, err := client.Audio.Speech.New(ctx, openai.AudioSpeechNewParams{Input: "Hello", Model: "tts-1", Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("alloy")}})
	if err != nil {
		return err
	}
	sound, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || len(sound) != 20 {
		return fmt.Errorf("%d bytes of sound, %v", len(sound), err)
	}
	heard, err := client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{File: openai.File(bytes.NewReader(sound), "a.mp3", "audio/mpeg"), Model: "whisper-1"})
	if err != nil || heard.Text != "The sound has 20 bytes." {
		return fmt.Errorf("transcription: %v %v", heard, err)
	}
	return nil
}
