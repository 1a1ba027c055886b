package body

import (
	"testing"

	"gateway/shared/pricing"
)

// Each operation has the documented maximum or default of what it leaves out. Fields that the
// provider may ignore never lower a bound.
func TestUnitsOfOperations(t *testing.T) {
	t.Parallel()
	const veo, sora, imagen = "/v1beta/models/veo-3.0-generate-001:predictLongRunning", "/v1/videos", "/v1beta/models/imagen-4.0-generate-001:predict"
	for _, c := range []struct {
		path, body    string
		class         pricing.Class
		most, assumed int64 // -1: unknown
		size          string
	}{
		{sora, `{"model":"sora-2","prompt":"x"}`, pricing.Seconds, 12, 4, "720x1280"},
		{sora, `{"seconds":"8","size":"1280x720"}`, pricing.Seconds, 8, 8, "1280x720"},
		{"/openai/v1/videos/", `{"seconds":4}`, pricing.Seconds, 4, 4, "720x1280"},
		{sora, `{"duration":1,"x":{"seconds":1},"Seconds":"1"}`, pricing.Seconds, 12, 4, "720x1280"},
		{sora, `{"seconds":"4","duration":20}`, pricing.Seconds, 20, 4, "720x1280"},
		{sora, `{"seconds":"4","seconds":"12"}`, pricing.Seconds, 12, 4, "720x1280"},
		{sora, `{"seconds":"4","n":3}`, pricing.Seconds, 12, 12, "720x1280"},
		{sora, `{"seconds":-5}`, pricing.Seconds, 12, 4, "720x1280"},
		{veo, `{"instances":[{"prompt":"x"}]}`, pricing.Seconds, 8, 8, "1280x720"},
		{veo, `{"instances":[{},{}],"parameters":{"sampleCount":3,"durationSeconds":5,"resolution":"1080p"}}`, pricing.Seconds, 30, 30, "1920x1080"},
		{veo, `{"instances":[{}],"parameters":{"duration_seconds":1,"DURATIONSECONDS":1},"x":{"parameters":{"durationSeconds":1}}}`, pricing.Seconds, 8, 8, "1280x720"},
		{veo, `{"instances":[{}],"parameters":{"resolution":"8k"}}`, pricing.Seconds, 8, 8, ""},
		{imagen, `{"instances":[{"prompt":"x"}]}`, pricing.Images, 4, -1, ""},
		{imagen, `{"instances":[{"prompt":"x"}],"parameters":{"sampleCount":1}}`, pricing.Images, 1, -1, ""},
		{imagen, `{"instances":[{"sampleCount":1}]}`, pricing.Images, 4, -1, ""},
		{"/model/amazon.titan-image-generator-v2:0/invoke", `{"imageGenerationConfig":{"numberOfImages":3}}`, pricing.Images, 3, -1, ""},
		{"/model/stability.sd3-5-large-v1:0/invoke", `{"prompt":"x"}`, pricing.Images, 1, -1, ""},
		{"/fal-ai/flux-2-pro", `{"prompt":"x","num_images":4}`, pricing.Images, 4, -1, ""},
		{"/api/v3/images/generations", `{"n":2,"sequential_image_generation_options":{"max_images":15}}`, pricing.Images, 15, -1, ""},
		{"/v1/speak", `{"text":"ab"}`, pricing.Characters, 13, -1, ""},
		{"/v1/listen", `{"url":"https://a.example/b.mp3"}`, pricing.Seconds, -1, -1, ""},
		{"/v1/listen", ``, pricing.Seconds, 11, -1, ""},
		{"/v2beta/stable-image/generate/core", ``, pricing.Images, 1, -1, ""},
		{"/anything", `{"prompt":"x"}`, pricing.Images, -1, -1, ""},
		{"/anything", `{"prompt":"x"}`, pricing.Seconds, -1, -1, ""},
	} {
		var body []byte
		if c.body != "" {
			body = []byte(c.body)
		}
		d := UnitsOf(c.path, body, 7500)
		check := func(name string, u pricing.Usage, want int64) {
			t.Helper()
			got, ok := u.Get(c.class)
			if !ok {
				got = -1
			}
			if got != want {
				t.Errorf("%s %s: %s is %d, want %d", c.path, c.body, name, got, want)
			}
		}
		check("most", d.Most, c.most)
		check("assumed", d.Assumed, c.assumed)
		if d.Size != c.size {
			t.Errorf("%s %s: size %q, want %q", c.path, c.body, d.Size, c.size)
		}
	}
	form := map[string]string{"model": "sora-2", "seconds": "8", "size": "1280x720"}
	d := DemandOfForm(sora, func(name string) (string, bool) { v, ok := form[name]; return v, ok }, 100)
	if d.Most.N(pricing.Seconds) != 8 || d.Assumed.N(pricing.Seconds) != 8 || d.Size != "1280x720" {
		t.Errorf("%+v", d)
	}
}
