package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/openai/openai-go/v3"
)

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
