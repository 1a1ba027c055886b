package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/shared/pricing"
)

// TestUnitsAreReservedAndBooked orders what is priced by seconds and images below /proxy and at
// the gateway's routes: the most that it may cost has to fit the budget, what is made is booked,
// and what states no number is not sent while a budget is in force.
func TestUnitsAreReservedAndBooked(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/videos"):
			_, _ = io.WriteString(w, `{"id":"video_1","object":"video","created_at":1,"status":"queued","model":"sora-2","seconds":"8","size":"720x1280"}`)
		case strings.Contains(r.URL.Path, "predictLongRunning"):
			_, _ = io.WriteString(w, `{"name":"models/veo-3.0-generate-001/operations/o1"}`)
		default:
			_, _ = io.WriteString(w, `{"done":true}`)
		}
	}))
	t.Cleanup(host.Close)
	r := start(t)
	r.save("films", fmt.Sprintf(`"ai_provider_id":"openai","key":"k","configurations":{"custom_host":%q}`, host.URL))
	r.save("veo", fmt.Sprintf(`"ai_provider_id":"google","key":"k","configurations":{"custom_host":%q}`, host.URL))
	const sora, veo = `{"model":"sora-2","prompt":"x","seconds":"8","size":"720x1280"}`, `{"instances":[{"prompt":"x"}],"parameters":{"durationSeconds":5}}`
	const veoPath = "/proxy/v1beta/models/veo-3.0-generate-001:predictLongRunning"
	soraForm := form("model", "sora-2", "seconds", "8", "size", "720x1280", "image", "a.png:x")
	for _, c := range []struct {
		name, provider, method, path, body, limit string
		more                                      []string
		status                                    int
		used                                      string
	}{
		{"sora", "@films", "POST", "/proxy/videos", sora, "1", nil, 200, "0.8"},
		{"sora by a form", "@films", "POST", "/proxy/videos", soraForm, "1", formType, 200, "0.8"},
		{"sora beyond the budget", "@films", "POST", "/proxy/videos", sora, "0.5", nil, 412, "0"},
		{"sora by a form beyond the budget", "@films", "POST", "/proxy/videos", soraForm, "0.5", formType, 412, "0"},
		{"sora without seconds", "@films", "POST", "/proxy/videos", `{"model":"sora-2","prompt":"x"}`, "1", nil, 412, "0"},
		{"veo", "@veo", "POST", veoPath, veo, "5", nil, 200, "2"},
		{"veo beyond the budget", "@veo", "POST", veoPath, veo, "1", nil, 412, "0"},
		{"veo with a decoy", "@veo", "POST", veoPath, `{"instances":[{"prompt":"x","durationSeconds":1}],"duration_seconds":1}`, "3", nil, 412, "0"},
		{"a poll", "@veo", "GET", "/proxy/v1beta/models/veo-3.0-generate-001/operations/o1", "", "1", nil, 200, "0"},
		{"images of an unknown operation", "@films", "POST", "/proxy/anything", `{"model":"dall-e-3","prompt":"x"}`, "1", nil, 412, "0"},
		{"a chat with a model priced by images", "@films", "POST", "/chat/completions", `{"model":"dall-e-3","messages":[{"role":"user","content":"x"}]}`, "1", nil, 412, "0"},
	} {
		key, before := r.newKey(`"usage_limits":{"type":"cost","credit_limit":`+c.limit+`}`), asked.Load()
		headers := append([]string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", c.provider}, c.more...)
		got := r.call(c.method, c.path, c.body, headers...)
		if got.status != c.status || (asked.Load() > before) != (c.status == 200) {
			t.Errorf("%s: %d %s, the provider was asked %d times", c.name, got.status, got.body, asked.Load()-before)
			continue
		}
		eventually(t, func() error {
			if limits := limitsOf(r, key); fmt.Sprint(limits["current_usage"]) != c.used {
				return fmt.Errorf("%s: %v, want %s", c.name, limits, c.used)
			}
			return nil
		})
	}
	unknown := func(key string) reply {
		return r.call("POST", "/proxy/anything", `{"model":"dall-e-3","prompt":"x"}`, "X-Gateway-Api-Key", key, "X-Gateway-Provider", "@films")
	}
	if got := unknown(r.newKey("")); got.status != 200 {
		t.Errorf("without a budget: %d %s", got.status, got.body)
	}
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	if got := unknown(key); got.status != 412 || !strings.Contains(got.body, "unbounded_request") || !strings.Contains(got.body, "budget_settings.unbounded") {
		t.Errorf("%d %s", got.status, got.body)
	}
	r.admin("PUT", "/admin/organisation/settings", `{"budget_settings":{"unbounded":"allow"}}`)
	eventually(t, func() error {
		if got := unknown(key); got.status != 200 {
			return fmt.Errorf("allowed: %d %s", got.status, got.body)
		}
		return nil
	})
}

// TestImagesArePricedByTheirMegapixels makes images at a host that charges by the megapixel and
// reports no size. Each is charged by the size in its header, else by the requested one.
func TestImagesArePricedByTheirMegapixels(t *testing.T) {
	t.Parallel()
	const inBytes = `{"data":[{"b64_json":"` + pngHeader640x480 + `"}]}`
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(body), "b64_json") {
			_, _ = io.WriteString(w, inBytes)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"url":"https://a.example/1.png"},{"url":"https://a.example/2.png"}]}`)
	}))
	t.Cleanup(host.Close)
	r := start(t)
	r.save("flux", fmt.Sprintf(`"ai_provider_id":"together-ai","key":"k","configurations":{"custom_host":%q}`, host.URL))
	const model = `"model":"black-forest-labs/FLUX.1-schnell","prompt":"x"`
	price, ok := pricing.Default().Price("together-ai", "black-forest-labs/FLUX.1-schnell", pricing.Options{})
	if !ok {
		t.Fatal("the model has no price")
	}
	for _, c := range []struct {
		body   string
		pixels int64
	}{
		{`{` + model + `,"n":2,"width":512,"height":768}`, 2 * 512 * 768},
		{`{` + model + `,"n":2,"size":"512x512"}`, 2 * 512 * 512},
		{`{` + model + `,"n":2}`, 2 * 1024 * 1024},
		{`{` + model + `,"n":2,"size":"1000x1000","steps":8}`, 2 * 2 * 1000 * 1000},
		{`{` + model + `,"width":1024,"height":1024,"response_format":"b64_json"}`, 640 * 480},
	} {
		key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
		got := r.call("POST", "/proxy/images/generations", c.body, "X-Gateway-Api-Key", key, "X-Gateway-Provider", "@flux")
		if got.status != 200 {
			t.Errorf("%s: %d %s", c.body, got.status, got.body)
			continue
		}
		var u pricing.Usage
		u.Set(pricing.Pixels, c.pixels)
		want, _ := price.Cost(u).USD().Float64()
		eventually(t, func() error {
			if limits := limitsOf(r, key); limits["current_usage"] != want {
				return fmt.Errorf("%s: %v, want %v", c.body, limits["current_usage"], want)
			}
			return nil
		})
	}
	for _, rec := range r.records(5) {
		if !rec.Priced || rec.Cost == 0 {
			t.Errorf("%+v", rec)
		}
	}
}

// pngHeader640x480 is the beginning of a PNG in base64.
const pngHeader640x480 = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA10dzk"

// Moderation is free: it states no units, and a budget does not need any.
func TestModerationsPassUnderABudget(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.keyWith("completions.write", `,"usage_limits":{"type":"cost","credit_limit":1}`)
	for _, model := range []string{"omni-moderation-latest", "text-moderation-latest"} {
		if got := r.call("POST", "/moderations", `{"model":"`+model+`","input":"Hello"}`, "X-Gateway-Api-Key", key, "X-Gateway-Provider", "@mock"); got.status != 200 {
			t.Errorf("%s: %d %s", model, got.status, got.body)
		}
	}
}
