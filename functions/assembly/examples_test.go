package assembly_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gateway/functions/assembly"
	"gateway/shared/app/plane"
	"gateway/shared/relay"
	"gateway/shared/testkit/admintest/drive"
)

// TestEveryExampleIsTaken sends the example of each request of the document as it stands.
// What an example cannot know may be rejected: that what it names is there, and what state
// it is in. Nothing else of it may.
func TestEveryExampleIsTaken(t *testing.T) {
	t.Parallel()
	families := map[string][]*drive.Operation{}
	for _, op := range install(t, nil).doc.Operations {
		if op.Body != nil && !op.Alias && op.Example != nil {
			families[op.Tag] = append(families[op.Tag], op)
		}
	}
	for tag, ops := range families {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			in := install(t, nil)
			in.user(rootKey, "member@example.com", "member", "first-space", "member")
			w := drive.NewResources(in.doc, in.as(rootKey))
			if tag == "inference" {
				space := in.must("GET", "/workspaces/first-space", rootKey, "")["id"].(string)
				for slug, id := range map[string]string{"openai": "openai", "cohere": "cohere", "mistral": "mistral-ai"} {
					in.must("POST", "/virtual-keys", rootKey, fmt.Sprintf(`{"name":%q,"slug":%q,"provider":%q,"key":"sk-one","workspace_id":%q}`, slug, slug, id, space))
				}
			}
			slices.SortStableFunc(ops, func(a, b *drive.Operation) int { return strings.Count(b.Path, "{") - strings.Count(a.Path, "{") })
			for _, op := range ops {
				example, err := json.Marshal(op.Example)
				if err != nil {
					t.Fatal(err)
				}
				in.t = t
				status, answer := in.example(w, op, example)
				if wrong := blames(status, answer); wrong != "" {
					t.Errorf("%s %s: %d %s, for %s", op.Method, op.Path, status, wrong, example)
				}
			}
		})
	}
	if len(families) < 20 {
		t.Errorf("only %d families have examples", len(families))
	}
}

// example sends an example to where it belongs.
func (in *installation) example(w *drive.Resources, op *drive.Operation, body []byte) (int, []byte) {
	in.t.Helper()
	if op.Tag == "inference" {
		return in.infer(op, body)
	}
	path, _, err := request(w, op, drive.Workspace)
	if err != nil {
		path = op.Path // of one server or agent, whose slug is not found
	}
	key := rootKey
	if strings.HasPrefix(op.Path, "/feedback") || strings.HasPrefix(op.Path, "/otel") || op.Path == "/logs" {
		key = firstKey // keys of workspaces alone may
	}
	return in.request(op.Method, path, key, body)
}

// infer sends one to the data plane, with providers that cannot be reached.
func (in *installation) infer(op *drive.Operation, body []byte) (int, []byte) {
	in.t.Helper()
	mux := relay.NewMux(plane.New(in.core, unread{}, plane.Options{Jobs: plane.Jobs(), Translators: plane.Translators(), Sessions: relay.NewSessions()}), assembly.DataPlane())
	r := httptest.NewRequest(op.Method, "/v1"+op.Path, strings.NewReader(string(body)))
	r.Header.Set("x-gateway-api-key", firstKey)
	r.Header.Set("content-type", "application/json")
	if strings.HasPrefix(op.Path, "/realtime") {
		r.Header.Set("x-gateway-provider", "@openai") // their models are named as the provider does
	}
	a := httptest.NewRecorder()
	mux.ServeHTTP(a, r)
	return a.Code, a.Body.Bytes()
}

// elsewhere are rejections of what an example cannot know: ids and names of other things, and
// the state of this one.
var elsewhere = regexp.MustCompile(`is no [a-z ]+ of (the|this) |names no |must name an? [A-Za-z ]+ (of (the|this) |that this workspace may use)|must be the name of the workspace, as a confirmation|belongs to one workspace|is set by the organization for all|^This key belongs to no user`)

// blames gives what a response has against the body; "" for nothing.
func blames(status int, answer []byte) string {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity && status != http.StatusUnsupportedMediaType {
		return ""
	}
	var of struct {
		Data struct {
			Errors []struct{ Field, Message string }
		}
		Error struct{ Message string }
	}
	if json.Unmarshal(answer, &of) != nil || of.Error.Message == "" {
		return fmt.Sprintf("%.300s", answer)
	}
	for _, e := range of.Data.Errors {
		if !elsewhere.MatchString(e.Message) {
			return e.Field + ": " + e.Message
		}
	}
	if len(of.Data.Errors) == 0 && !elsewhere.MatchString(of.Error.Message) {
		return of.Error.Message
	}
	return ""
}
