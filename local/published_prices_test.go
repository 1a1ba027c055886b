package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPublishedSheetPricesRequests: a model that the list does not have is rejected under
// a budget, gets its price with the sheet at the address, and its log names the sheet.
// In a row: it sets the environment.
func TestAPublishedSheetPricesRequests(t *testing.T) {
	sheet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "prices\tours-7\t1\nopenai\tbrand-new-model\tinput=10 output=100\n")
	}))
	defer sheet.Close()
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sheet.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GATEWAY_CA_BUNDLE", roots)
	t.Setenv("GATEWAY_PRICES_URL", sheet.URL+"/prices.txt")
	r := start(t)
	const price = "/model-configs/pricing/openai/brand-new-model"
	eventually(t, func() error {
		if got := r.call("GET", price, ""); got.status != 200 {
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		return nil
	})
	d := r.get(price, workspaceKey)
	if book, _ := d["book"].(string); d["source"] != "published" || !strings.Contains(book, "+ours-7-") || member(d, "pay_as_you_go/request_token/price") != 0.001 {
		t.Errorf("the price is %v", d)
	}
	if d := r.get("/model-configs/pricing/openai/gpt-4o", workspaceKey); d["source"] != "list" {
		t.Errorf("the price of a model of the list is %v", d)
	}
	got := r.call("POST", "/chat/completions", `{"model":"brand-new-model","messages":[{"role":"user","content":"hello"}]}`,
		"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", r.mock.URL()+"/v1", "Authorization", "Bearer mock-key")
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	u := got.json(t)["usage"].(map[string]any)
	want := (u["prompt_tokens"].(float64)*10 + u["completion_tokens"].(float64)*100) / 1e6 * 100
	log := r.logs(1, workspaceKey)[0]
	if diff := log["cost"].(float64) - want; diff > 1e-9 || diff < -1e-9 {
		t.Errorf("the log has a cost of %v cents, want %v", log["cost"], want)
	}
	full := r.get("/logs/"+log["id"].(string), workspaceKey)
	if !strings.Contains(fmt.Sprint(full), "+ours-7-") {
		t.Errorf("the log does not name the sheet: %v", full)
	}
}

// TestInvalidPriceAddressIsReportedAtTheStart: before anything is served.
// In a row: it sets the environment.
func TestInvalidPriceAddressIsReportedAtTheStart(t *testing.T) {
	for _, address := range []string{"prices.txt", "http://prices.example.com/x", "https://169.254.169.254/x", "ftp://prices.example.com/x"} {
		t.Setenv("GATEWAY_PRICES_URL", address)
		g, err := open(t.Context(), options{data: t.TempDir(), addr: "127.0.0.1:0"})
		if err == nil {
			t.Errorf("%s was taken", address)
			_ = g.close()
		} else if !strings.Contains(err.Error(), "GATEWAY_PRICES_URL") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
