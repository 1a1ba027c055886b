package main

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"gateway/shared/resource"
	"gateway/shared/testkit/awstest"
)

// TestWhatIsPublishedHoldsInEveryProcess publishes versions of a prompt and of the
// partial that it takes in through one of two processes on one DynamoDB endpoint,
// while the other fills the prompt in all the time. Requests that begin MaxStale after
// a publish was answered must go by it in both. In a row: it sets the environment.
func TestWhatIsPublishedHoldsInEveryProcess(t *testing.T) {
	awstest.Start(t)
	first := spawn(t, t.TempDir(), "-store", "aws")
	second := spawn(t, t.TempDir(), "-store", "aws", "-mock=false")
	admin := &running{t: t, base: first.base}
	part := admin.admin("POST", "/prompts/partials", `{"name":"A partial","workspace_id":"default","string":"part 1"}`)["slug"].(string)
	collection := member(admin.admin("GET", "/collections?workspace_id=default", ""), "data/0/id")
	slug := admin.admin("POST", "/prompts", fmt.Sprintf(`{"name":"A prompt","workspace_id":"default","collection_id":%q,"virtual_key":"mock","model":"gpt-4o-mini","parameters":{},
		"template_metadata":{"template_type":"completion"},"string":"text 1, {{>%s}}"}`, collection, part))["slug"].(string)
	_, key := first.makeKey(t)
	filled := func(p *process) string {
		r := running{t: t, base: p.base}
		return fmt.Sprint(r.rendered(slug, `{}`)["prompt"])
	}
	for _, c := range []struct{ path, version, want string }{
		{"/prompts/" + slug, `"patch":true,"string":"text 2, {{>` + part + `}}"`, "text 2, part 1"},
		{"/prompts/partials/" + part, `"string":"part 2"`, "text 2, part 2"},
	} {
		before := filled(second)
		first.change(t, "PUT", c.path, fmt.Sprintf(`{"workspace_id":"default",%s}`, c.version))
		warm, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for warm.Err() == nil {
				second.send(t, "POST", "/prompts/"+slug+"/render", key, `{}`)
			}
		})
		if got := filled(second); got != before {
			t.Errorf("a version that is not published is in force: %q", got)
		}
		first.change(t, "PUT", c.path+"/makeDefault", `{"workspace_id":"default","version":2}`)
		pause(t.Context(), resource.MaxStale)
		stop()
		wg.Wait()
		for i, p := range []*process{first, second} {
			if got := filled(p); got != c.want {
				t.Errorf("process %d fills in %q, want %q", i+1, got, c.want)
			}
		}
	}
}
