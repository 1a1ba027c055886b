package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// createLimits creates a workspace with a budget, and keys in it that each have a budget and
// a rate limit, all too large to be reached. It returns the keys.
func createLimits(ctx context.Context, base string, n int) ([]string, error) {
	var workspace struct{ ID string }
	budget := map[string]any{"type": "cost", "credit_limit": 1_000_000}
	err := administer(ctx, base+"/v1/admin/workspaces", map[string]any{"name": "limited", "usage_limits": []any{budget}}, &workspace)
	if err != nil {
		return nil, err
	}
	keys := make([]string, n)
	for i := range keys {
		var created struct{ Key string }
		err := administer(ctx, base+"/v1/api-keys/workspace/service", map[string]any{
			"name": fmt.Sprintf("limited-%d", i), "workspace_id": workspace.ID, "scopes": []string{"completions.write"}, "usage_limits": budget,
			"rate_limits": []any{map[string]any{"type": "requests", "unit": "rpm", "value": 1_000_000_000}},
		}, &created)
		if err != nil {
			return nil, err
		}
		keys[i] = created.Key
	}
	return keys, nil
}

// administer posts to the administration API and decodes the response.
func administer(ctx context.Context, url string, body, out any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("x-gateway-api-key", adminKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if b, err = io.ReadAll(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %d %s", url, resp.StatusCode, b)
	}
	return json.Unmarshal(b, out)
}
