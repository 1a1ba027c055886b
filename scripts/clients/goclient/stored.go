package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/responses"
)

// kept checks stored objects with the provider that stores them: threads and their runs, vector
// stores, multipart uploads, stored chats, conversations.
func kept(ctx context.Context, g gateway, t target) error {
	if t.provider != "@mock" {
		return nil
	}
	client := g.openai(t)
	for _, check := range []func(context.Context, openai.Client) error{threadRun, vectorStore, uploadInParts, storedChat, conversation} {
		if err := check(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

func vectorStore(ctx context.Context, client openai.Client) error {
	file, err := client.Files.New(ctx, openai.FileNewParams{File: openai.File(strings.NewReader("the quick red fox"), "fox.txt", "text/plain"), Purpose: openai.FilePurposeAssistants})
	if err != nil {
		return err
	}
	store, err := client.VectorStores.New(ctx, openai.VectorStoreNewParams{Name: openai.String("animals")})
	if err != nil {
		return err
	}
	if _, err := client.VectorStores.Files.New(ctx, store.ID, openai.VectorStoreFileNewParams{FileID: file.ID}); err != nil {
		return err
	}
	found, err := client.VectorStores.Search(ctx, store.ID, openai.VectorStoreSearchParams{Query: openai.VectorStoreSearchParamsQueryUnion{OfString: openai.String("red fox")}})
	if err != nil || len(found.Data) != 1 || found.Data[0].FileID != file.ID {
		return fmt.Errorf("search: %v %v", found, err)
	}
	_, err = client.VectorStores.Delete(ctx, store.ID)
	return err
}

func uploadInParts(ctx context.Context, client openai.Client) error {
	upload, err := client.Uploads.New(ctx, openai.UploadNewParams{Bytes: 6, Filename: "a.txt", MimeType: "text/plain", Purpose: openai.FilePurposeUserData})
	if err != nil {
		return err
	}
	var ids []string
	for _, content := range []string{"one", "two"} {
		part, err := client.Uploads.Parts.New(ctx, upload.ID, openai.UploadPartNewParams{Data: strings.NewReader(content)})
		if err != nil {
			return err
		}
		ids = append(ids, part.ID)
	}
	done, err := client.Uploads.Complete(ctx, upload.ID, openai.UploadCompleteParams{PartIDs: ids})
	if err != nil || done.Status != openai.UploadStatusCompleted || done.File.Bytes != 6 {
		return fmt.Errorf("upload: %v %v", done, err)
	}
	return nil
}

func storedChat(ctx context.Context, client openai.Client) error {
	p := ask(target{model: "gpt-4o-mini"}, "mock: say=kept")
	p.Store = openai.Bool(true)
	made, err := client.Chat.Completions.New(ctx, p)
	if err != nil {
		return err
	}
	read, err := client.Chat.Completions.Get(ctx, made.ID)
	if err != nil || read.Choices[0].Message.Content != "kept" {
		return fmt.Errorf("stored chat: %v %v", read, err)
	}
	if _, err := client.Chat.Completions.Delete(ctx, made.ID); err != nil {
		return err
	}
	var gone *openai.Error
	if _, err := client.Chat.Completions.Get(ctx, made.ID); !errors.As(err, &gone) || gone.StatusCode != 404 {
		return fmt.Errorf("a deleted chat: %v", err)
	}
	return nil
}

func conversation(ctx context.Context, client openai.Client) error {
	talk, err := client.Conversations.New(ctx, conversations.ConversationNewParams{})
	if err != nil {
		return err
	}
	first, err := client.Responses.New(ctx, responses.ResponseNewParams{
		Model: "gpt-4o-mini", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("mock: say=one")},
		Conversation: responses.ResponseNewParamsConversationUnion{OfString: openai.String(talk.ID)},
	})
	if err != nil {
		return err
	}
	read, err := client.Responses.Get(ctx, first.ID, responses.ResponseGetParams{})
	if err != nil || read.OutputText() != "one" {
		return fmt.Errorf("response: %v %v", read, err)
	}
	items, err := client.Conversations.Items.List(ctx, talk.ID, conversations.ItemListParams{})
	if err != nil || len(items.Data) != 2 {
		return fmt.Errorf("items: %v %v", items, err)
	}
	return client.Responses.Delete(ctx, first.ID)
}
