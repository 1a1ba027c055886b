package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"gateway/shared/pricing"
)

// videoHost makes videos whose end is named by their prompt. A job has ended once it was read
// twice.
type videoHost struct {
	mu    sync.Mutex
	made  int
	ends  map[string]string // by id
	reads map[string]int
}

// ServeHTTP implements http.Handler.
func (h *videoHost) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	google := strings.Contains(req.URL.Path, "/models/")
	id, end := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:], ""
	if req.Method == http.MethodPost {
		h.made++
		id = fmt.Sprintf("job_%d", h.made)
		_, h.ends[id], _ = strings.Cut(string(body), `"prompt":"`)
		h.ends[id], _, _ = strings.Cut(h.ends[id], `"`)
	} else if h.reads[id]++; h.reads[id] > 1 {
		end = h.ends[id]
	}
	w.Header().Set("Content-Type", "application/json")
	if !google {
		if end == "" {
			end = "in_progress"
		}
		fmt.Fprintf(w, `{"id":%q,"object":"video","status":%q,"model":"sora-2","seconds":"8","size":"720x1280"}`, id, end)
		return
	}
	fmt.Fprintf(w, `{"name":"models/veo-3.0-generate-001/operations/%s"`, id)
	switch end {
	case "completed":
		_, _ = io.WriteString(w, `,"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"x"}},{"video":{"uri":"y"}}]}}`)
	case "withheld":
		_, _ = io.WriteString(w, `,"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"x"}}],"raiMediaFilteredCount":1}}`)
	case "filtered":
		_, _ = io.WriteString(w, `,"done":true,"response":{"generateVideoResponse":{"raiMediaFilteredCount":2,"raiMediaFilteredReasons":["x"]}}`)
	case "failed":
		_, _ = io.WriteString(w, `,"done":true,"error":{"code":13,"message":"x"}`)
	}
	_, _ = io.WriteString(w, "}")
}

// TestVideosAreBookedAsTheyAreDelivered orders videos that are delivered, withheld or fail, and
// reads them several times at once: each is recorded once, for what was delivered, and nothing stays
// reserved. A job that no client reads is read by the gateway.
func TestVideosAreBookedAsTheyAreDelivered(t *testing.T) {
	t.Parallel()
	h := &videoHost{ends: map[string]string{}, reads: map[string]int{}}
	host := httptest.NewServer(h)
	t.Cleanup(host.Close)
	const veo = "/proxy/v1beta/models/veo-3.0-generate-001"
	for name, byClient := range map[string]bool{"read by the client": true, "read by the gateway": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			if !byClient {
				r = startIn(t, t.TempDir(), soon)
			}
			r.save("films", fmt.Sprintf(`"ai_provider_id":"openai","key":"k-films","configurations":{"custom_host":%q}`, host.URL))
			r.save("veo", fmt.Sprintf(`"ai_provider_id":"google","key":"k-veo","configurations":{"custom_host":%q}`, host.URL))
			for _, c := range []struct{ end, provider, limits, used string }{
				{"completed", "@films", `"usage_limits":{"type":"cost","credit_limit":20}`, "0.8"},
				{"failed", "@films", `"usage_limits":{"type":"cost","credit_limit":20}`, "0"},
				{"completed", "@veo", `"usage_limits":{"type":"cost","credit_limit":20}`, "4"},
				{"withheld", "@veo", `"usage_limits":{"type":"cost","credit_limit":20}`, "2"},
				{"filtered", "@veo", `"usage_limits":{"type":"cost","credit_limit":20}`, "0"},
				{"failed", "@veo", `"usage_limits":{"type":"cost","credit_limit":20}`, "0"},
				{"completed", "@veo", "", ""},
			} {
				key := r.newKey(c.limits)
				headers := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", c.provider}
				path, body, read := "/proxy/videos", fmt.Sprintf(`{"model":"sora-2","prompt":%q,"seconds":"8","size":"720x1280"}`, c.end), "/proxy/videos/"
				if c.provider == "@veo" {
					path, body, read = veo+":predictLongRunning", fmt.Sprintf(`{"instances":[{"prompt":%q}],"parameters":{"durationSeconds":5,"sampleCount":2}}`, c.end), veo+"/operations/"
				}
				got := r.call("POST", path, body, headers...)
				if got.status != 200 {
					t.Fatalf("%+v: %d %s", c, got.status, got.body)
				}
				id := got.body[strings.Index(got.body, "job_"):]
				id, _, _ = strings.Cut(id, `"`)
				if byClient {
					r.call("GET", read+id, "", headers...)
					if limits := limitsOf(r, key); c.limits != "" && (fmt.Sprint(limits["current_usage"]) != "0" || fmt.Sprint(limits["reserved_usage"]) == "0") {
						t.Errorf("%+v: while it is made: %v", c, limits)
					}
					var wg sync.WaitGroup
					for range 4 {
						wg.Go(func() {
							if got := r.call("GET", read+id, "", headers...); got.status != 200 {
								t.Errorf("%+v: %d %s", c, got.status, got.body)
							}
						})
					}
					wg.Wait()
				}
				if c.limits == "" {
					continue
				}
				eventually(t, func() error {
					if limits := limitsOf(r, key); fmt.Sprint(limits["current_usage"]) != c.used || fmt.Sprint(limits["reserved_usage"]) != "0" || limits["status"] != "active" {
						return fmt.Errorf("%+v: %v", c, limits)
					}
					return nil
				})
			}
			_, paid := r.costing(4)
			for _, rec := range paid {
				if rec.Method != "GET" || rec.Usage.N(pricing.Seconds) == 0 || !rec.Priced {
					t.Errorf("%+v", rec)
				}
			}
			if len(paid) != 4 {
				t.Errorf("%d records cost something", len(paid))
			}
		})
	}
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
		{`{` + model + `,"n":2,"width":1792}`, 2 * 1792 * 1024},
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
	for _, rec := range r.records(6) {
		if !rec.Priced || rec.Cost == 0 {
			t.Errorf("%+v", rec)
		}
	}
}

// pngHeader640x480 is the beginning of a PNG in base64.
const pngHeader640x480 = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA10dzk"
