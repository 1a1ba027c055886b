// Command generated uses a client that oapi-codegen makes of the gateway's API document: it
// compiles only if the document describes parameters, bodies and responses with their types.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"gateway/scripts/clients/goclient/client"
)

func main() {
	if err := use(context.Background(), os.Getenv("GATEWAY_URL")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

// by returns a client whose requests have a key.
func by(url, key string) (*client.ClientWithResponses, error) {
	return client.NewClientWithResponses(url, client.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
		req.Header.Set("x-gateway-api-key", key)
		return nil
	}))
}

// use saves a config, sends a request with it, and deletes it.
func use(ctx context.Context, url string) error {
	admin, err := by(url, os.Getenv("GATEWAY_ADMIN_KEY"))
	if err != nil {
		return err
	}
	workspace, name := "default", "generated Go client"
	form := client.CreateConfigRequest{Name: name, WorkspaceId: &workspace}
	if err := json.Unmarshal([]byte(`{"provider":"@mock"}`), &form.Config); err != nil {
		return err
	}
	made, err := admin.CreateConfigWithResponse(ctx, nil, form)
	if err != nil {
		return err
	}
	if made.JSON200 == nil {
		return fmt.Errorf("create: %s", made.Body)
	}
	slug := made.JSON200.Slug
	read, err := admin.GetConfigWithResponse(ctx, slug, nil)
	if err != nil {
		return err
	}
	if read.JSON200 == nil || read.JSON200.Data.Name != name {
		return fmt.Errorf("read: %s", read.Body)
	}
	missing, err := admin.GetConfigWithResponse(ctx, "no-such-config", nil)
	if err != nil {
		return err
	}
	if missing.JSON4XX == nil || missing.StatusCode() != http.StatusNotFound {
		return fmt.Errorf("read of a config that does not exist: %s", missing.Body)
	}

	caller, err := by(url, os.Getenv("GATEWAY_WORKSPACE_KEY"))
	if err != nil {
		return err
	}
	model := "gpt-4o-mini"
	ask := client.ChatCompleteRequest{Model: &model}
	if err := json.Unmarshal([]byte(`[{"role":"user","content":"mock: say=Typed"}]`), &ask.Messages); err != nil {
		return err
	}
	answer, err := caller.ChatCompleteWithResponse(ctx, &client.ChatCompleteParams{XGatewayConfig: &slug}, ask)
	if err != nil {
		return err
	}
	if answer.JSON200 == nil || *answer.JSON200.Choices[0].Message.Content != "Typed" {
		return fmt.Errorf("chat: %s", answer.Body)
	}
	removed, err := admin.DeleteConfigWithResponse(ctx, slug, nil)
	if err != nil {
		return err
	}
	if removed.StatusCode() != http.StatusOK {
		return fmt.Errorf("delete: %s", removed.Body)
	}
	return nil
}
