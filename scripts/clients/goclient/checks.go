package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
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
