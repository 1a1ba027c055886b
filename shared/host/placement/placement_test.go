package placement

import (
	"strings"
	"testing"
)

func TestTableIsSound(t *testing.T) {
	routes, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(routes) < 10 || len(Hash()) != 12 {
		t.Errorf("%d routes, hash %q", len(routes), Hash())
	}
	names, places := Families()
	for _, name := range names {
		if places[name] != Stream && places[name] != Buffered {
			t.Errorf("family %s is at %q", name, places[name])
		}
		for _, r := range routes {
			if r.Family == name && r.WithoutContainer != places[name] && r.WithoutContainer != Refused {
				t.Errorf("family %s answers both ways: %+v", name, r)
			}
		}
	}
}

func TestMostSpecificRouteWins(t *testing.T) {
	for _, c := range []struct{ method, path, family, pattern string }{
		{"POST", "/chat/completions", "chat", "/chat/completions"},
		{"GET", "/chat/completions", "passthrough", "/{path+}"},
		{"POST", "/chat/completions/", "passthrough", "/{path+}"},
		{"POST", "/chat%2Fcompletions", "passthrough", "/{path+}"},
		{"GET", "/realtime", "realtime", "/realtime"},
		{"GET", "/realtime/calls/1", "passthrough", "/realtime/{path+}"},
		{"GET", "/files", "files", "/files"},
		{"POST", "/files", "files", "/files"},
		{"GET", "/files/f1/content", "files", "/files/{id}/content"},
		{"PUT", "/files/f1", "passthrough", "/{path+}"},
		{"POST", "/messages", "messages", "/messages"},
		{"POST", "/messages/count_tokens", "messages", "/messages/count_tokens"},
		{"POST", "/responses", "responses", "/responses"},
		{"GET", "/responses/r1", "responses", "/responses/{id}"},
		{"PATCH", "/responses/r1", "", ""},
		{"PATCH", "/configs", "configs", "/configs"},
		{"POST", "/configs/pc-1", "configs", "/configs/{slug}"},
		{"DELETE", "/logs/groups/model", "analytics", "/logs/groups/{groupBy}"},
		{"POST", "/configs/", "passthrough", "/{path+}"},
		{"POST", "/guardrails", "guardrails", "/guardrails"},
	} {
		r, ok := Find(c.method, c.path)
		if ok != (c.family != "") || r.Family != c.family || r.Path != c.pattern {
			t.Errorf("%s %s: %+v, %t", c.method, c.path, r, ok)
		}
	}
}

func TestBrokenTablesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"three columns":             "GET /a chat",
		"six columns":               "GET /a chat container stream x",
		"no place":                  "GET /a chat somewhere",
		"no path":                   "GET a chat stream",
		"twice":                     "GET /a chat stream\nGET /a chat stream",
		"container alone":           "GET /a chat container",
		"container and no status":   "GET /a chat container 200",
		"container and no number":   "GET /a chat container nowhere",
		"stream without container?": "GET /a chat stream stream",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), "routes.txt:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnknownPathsOfSCIMReachItsFamily checks that the family of SCIM answers every path below
// it, with any method, so that its errors have the form that identity providers read.
func TestUnknownPathsOfSCIMReachItsFamily(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"} {
		for _, path := range []string{"/scim/Users", "/scim/v2/Users/x", "/scim/Nothing", "/scim/Users/x/y/z"} {
			if r, ok := Find(method, path); !ok || r.Family != "scim" || r.Place != Buffered {
				t.Errorf("%s %s: %+v %v", method, path, r, ok)
			}
		}
	}
}
