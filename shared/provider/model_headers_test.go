package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"gateway/shared/resource"
	"gateway/shared/seal"
	seallocal "gateway/shared/seal/local"
	"gateway/shared/store"
)

// TestHeadersOfModelsAreSealed follows the custom headers of a model from what an earlier version
// stored unsealed to their end with the model's host.
func TestHeadersOfModelsAreSealed(t *testing.T) {
	t.Parallel()
	master, err := seallocal.Open(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, sealer := context.Background(), seal.New(master, time.Now)
	const secret = "CANARY-0123456789"
	rec := resource.Record{Scope: store.Scope{Org: "o"}, Kind: KindIntegration, ID: "i"}
	var i Integration
	legacy := `{"ai_provider_id":"openai","models":[{"slug":"a/b.c","enabled":true,"configurations":{"custom_host":"https://a.test","custom_headers":{"X-Key":"` + secret + `"}}}]}`
	if err := json.Unmarshal([]byte(legacy), &i); err != nil {
		t.Fatal(err)
	}
	opened := func() string {
		t.Helper()
		secrets, err := rec.OpenSecrets(ctx, sealer)
		if err != nil {
			t.Fatal(err)
		}
		headers, err := i.OpenModelHeaders(secrets)
		if err != nil || len(secrets) > 0 {
			t.Fatalf("%v; left are %v", err, secrets)
		}
		return headers["a/b.c"]["X-Key"]
	}
	if opened() != secret {
		t.Error("unsealed headers of an earlier version are not used")
	}
	for range 2 { // again, without a change
		if err := i.SealModels(ctx, sealer, &rec); err != nil {
			t.Fatal(err)
		}
		body, _ := json.Marshal(i)
		if bytes.Contains(body, []byte(secret)) || i.MaskedHeaders(&i.Models[0])["X-Key"] != "CA****89" {
			t.Errorf("stored: %s", body)
		}
		if opened() != secret {
			t.Error("sealed headers are not used")
		}
	}
	i.Models[0].Configurations = nil
	if err := i.SealModels(ctx, sealer, &rec); err != nil || len(rec.SecretNames()) > 0 || i.ModelHeaders != nil {
		t.Errorf("without a host: %v %v %v", err, rec.SecretNames(), i.ModelHeaders)
	}
}
