package assembly_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gateway/shared/admin"
)

// TestEveryRouteRefusesUnknownNames sends each route of the administration a body and a query
// with one name that it does not know. Routes of protocols that others define ignore it, and
// public routes any query.
//
//lane:property
func TestEveryRouteRefusesUnknownNames(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.user(rootKey, "admin@example.com", "admin", "", "")
	session := in.session("admin@example.com")
	serviceKey := in.serviceKey(in.must("GET", "/workspaces/first-space", rootKey, "")["id"].(string))
	const name = "zz_unknown_zz"
	values := map[string]string{"type": "workspace", "subType": "service", "groupBy": "model"}
	bodies, queries := 0, 0
	for _, family := range in.families {
		for i := range family.Routes {
			r := &family.Routes[i]
			if r.Rejections != nil || r.Unparsed || slices.Contains(r.Consumes, "application/x-www-form-urlencoded") || r.Path == "/session" && r.Method == "DELETE" {
				continue // the last one takes a cookie
			}
			key := rootKey
			switch {
			case r.Authenticate != nil:
				key = session
			case r.Resource == "sessions" || r.Public:
				key = ""
			case r.ByWorkspaces && slices.Contains(r.Scopes, "feedbacks.write"):
				key = serviceKey
			case r.ByWorkspaces:
				key = firstKey
			}
			path := r.Path
			for _, seg := range strings.Split(r.Path, "/") {
				if v, ok := strings.CutPrefix(seg, "{"); ok {
					v = strings.TrimSuffix(v, "}")
					if values[v] != "" {
						v = values[v]
					}
					path = strings.Replace(path, seg, url.PathEscape(v), 1)
				}
			}
			at := "?"
			if (r.Level == admin.InWorkspace || r.Level == admin.InEither) && !r.ByWorkspaces && !strings.HasPrefix(path, "/api-keys") {
				at = "?workspace_id=first-space&"
			}
			refused := func(what string, query, body string) {
				t.Helper()
				got := in.send(r.Method, path+query, key, []byte(body))
				if answer := got.Body.String(); got.Code != http.StatusBadRequest || !strings.Contains(answer, `"field":"`+name+`"`) && !strings.Contains(answer, `"field":"[0].`+name+`"`) || !strings.Contains(answer, `unknown `) {
					t.Errorf("%s %s, an unknown %s: %d %.300s", r.Method, r.Path, what, got.Code, answer)
				}
			}
			if r.Body != nil || !r.Public && (r.Method == "POST" || r.Method == "PUT") {
				bodies++
				refused("field", strings.TrimSuffix(at, "&"), `{"`+name+`":1}`)
			}
			if !r.Public {
				queries++
				body := ""
				if r.Body != nil {
					body = "{}"
				}
				refused("query parameter", at+name+"=1", body)
			}
		}
	}
	if bodies < 90 || queries < 230 {
		t.Errorf("only %d bodies and %d queries", bodies, queries)
	}
}
