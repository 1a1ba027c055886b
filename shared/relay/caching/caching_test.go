package caching

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/cache"
	"gateway/shared/dialect/openai"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
	"gateway/shared/tenant"
)

// asking is a request as far as the cache looks at it.
func asking(endpoint string) *Cache {
	c := &Cache{Target: &target.Target{Req: new(admission.Request), Body: new(body.Body), Plan: new(plan.Plan)}, Backend: &cache.Cache{}}
	c.Target.Body.Req = c.Target.Req
	c.Target.Req.Route = &routes.Route{Endpoint: endpoint, BodyMode: routes.Unified, Client: openai.Chat{}}
	c.Target.Req.Req = &http.Request{Method: http.MethodPost, Header: http.Header{}}
	c.Target.Req.Org, c.Target.Body.In = &tenant.Organisation{}, []byte(`{}`)
	return c
}

func TestWhatMayBeCached(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		endpoint string
		change   func(c *Cache)
		want     bool
	}{
		"chat":                   {"chatComplete", nil, true},
		"embeddings":             {"embed", nil, true},
		"counting":               {"messagesCountTokens", nil, true},
		"speech":                 {"createSpeech", nil, false},
		"a file":                 {"uploadFile", nil, false},
		"a batch":                {"createBatch", nil, false},
		"an edit of an image":    {"imageEdit", nil, false},
		"pass-through":           {"chatComplete", func(c *Cache) { c.Target.Req.Route.BodyMode = routes.Raw }, false},
		"a list":                 {"chatComplete", func(c *Cache) { c.Target.Req.Route.BodyMode = routes.Listing }, false},
		"GET":                    {"chatComplete", func(c *Cache) { c.Target.Req.Req.Method = http.MethodGet }, false},
		"a form":                 {"chatComplete", func(c *Cache) { c.Target.Choice.ContentType = "multipart/form-data; boundary=b" }, false},
		"no cache":               {"chatComplete", func(c *Cache) { c.Backend = nil }, false},
		"debug off":              {"chatComplete", func(c *Cache) { c.Target.Req.Headers.NoBodies = true }, false},
		"debug enforced":         {"chatComplete", func(c *Cache) { c.Target.Req.Headers.NoBodies, c.Target.Req.Org.Settings.EnforceDebug = true, &yes }, true},
		"debug refused":          {"chatComplete", func(c *Cache) { c.Target.Req.Org.Settings.EnforceDebug = &no }, false},
		"a response":             {"createModelResponse", func(c *Cache) { c.Target.Body.In = []byte(`{"background":false}`) }, true},
		"one in the background":  {"createModelResponse", func(c *Cache) { c.Target.Body.In = []byte(`{"background":true}`) }, false},
		"one that is not clear":  {"createModelResponse", func(c *Cache) { c.Target.Body.In = []byte(`{"Background":true}`) }, false},
		"one that is not object": {"createModelResponse", func(c *Cache) { c.Target.Body.In = []byte(`[]`) }, false},
	} {
		got := asking(c.endpoint)
		if c.change != nil {
			c.change(got)
		}
		if may := got.mayCache([]byte(`{}`)); may != c.want {
			t.Errorf("%s: %v, want %v", name, may, c.want)
		}
	}
	if asking("chatComplete").mayCache(nil) {
		t.Error("a request without a body")
	}
}

func TestWithoutACacheNothingIsDone(t *testing.T) {
	c, leaf, body := asking("chatComplete"), &route.Leaf{}, []byte(`{}`)
	c.Backend = nil
	allocs := testing.AllocsPerRun(100, func() {
		if a, _, err := c.LookUp(leaf, body); a != nil || err != nil || c.Stores() {
			t.Fatal(a, err)
		}
		c.Store(body)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestWhatIsWhole(t *testing.T) {
	const good = `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}`
	c := asking("chatComplete")
	for body, want := range map[string]bool{good: true, good + "x": false, `{}`: false, `[]`: false, ``: false, `{"error":{"message":"x"}}`: false, "<html>": false} {
		if got := c.complete([]byte(body)); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
	c.Target.Req.Route.Client = nil
	for body, want := range map[string]bool{`{}`: true, " \n{}": true, `{}{`: false, `"x"`: false} {
		if got := c.complete([]byte(body)); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
}

func TestNamespaceIsChecked(t *testing.T) {
	c := asking("chatComplete")
	for _, v := range []string{strings.Repeat("n", maxNamespace+1), "a\tb"} {
		c.Target.Req.Req.Header[headerCacheNamespace] = []string{v}
		_, _, err := c.LookUp(&route.Leaf{Cache: &route.Cache{Mode: "simple"}}, []byte(`{}`))
		var f interface{ Status() int }
		if !errors.As(err, &f) || f.Status() != http.StatusBadRequest || !strings.Contains(err.Error(), "namespace") {
			t.Errorf("%q: %v", v, err)
		}
	}
}
