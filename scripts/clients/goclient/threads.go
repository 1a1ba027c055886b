package main

//lint:file-ignore SA1019 assistants are served as long as providers have them

import (
	"context"
	"fmt"

	"github.com/openai/openai-go/v3"
)

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
