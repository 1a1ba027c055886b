package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/functions/assembly"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/identity"
	"gateway/shared/relay"
	"gateway/shared/usage/segment"
)

// routeCall is one way to call a registered route.
type routeCall struct {
	method, path string       // the path with its variables
	route        *admin.Route // nil on the data plane
}

func (d routeCall) String() string { return d.method + " " + d.path }

// routeCalls are all routes of both planes, by all their paths.
func (r *running) routeCalls() (all []routeCall) {
	for _, rt := range assembly.DataPlane() {
		if rt.Path != relay.AnyPath {
			all = append(all, routeCall{rt.Method, rt.Path, nil})
			continue
		}
		for _, m := range rt.Methods {
			all = append(all, routeCall{m, "/echo/x", nil}, routeCall{m, "/proxy/echo/x", nil})
		}
	}
	for _, f := range r.families() {
		for i := range f.Routes {
			for _, p := range append([]string{f.Routes[i].Path}, f.Routes[i].Aliases...) {
				all = append(all, routeCall{f.Routes[i].Method, p, &f.Routes[i]})
			}
		}
	}
	return all
}

func (r *running) families() []admin.Family {
	return assembly.Administration(r.g.core, segment.New(r.g.core.Store, r.g.core.Bucket, segment.Options{}))
}

var (
	variable = regexp.MustCompile(`\{[^}]+\}`)
	uuids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// same is a response without what differs from call to call.
func (r reply) same() string {
	h := r.header.Clone()
	for _, name := range []string{"Date", "X-Gateway-Request-Id", "X-Gateway-Trace-Id"} {
		h.Del(name)
	}
	return fmt.Sprint(r.status, h, uuids.ReplaceAllString(r.body, "id"))
}

// tenant makes a further organization in the running gateway, with keys of the
// caller's choice.
func (r *running) tenant(org, admin, workspace string) {
	r.t.Helper()
	_, err := r.g.core.Bootstrap(context.Background(), app.First{Organisation: org, Workspace: org + "-space", AdminKey: admin, WorkspaceKey: workspace, AllowInline: true})
	if err != nil {
		r.t.Fatal(err)
	}
}

// keyID finds a key by its name.
func (r *running) keyID(name string) string {
	r.t.Helper()
	for _, k := range r.admin("GET", "/api-keys?page_size=1000", "")["data"].([]any) {
		if k := k.(map[string]any); k["name"] == name {
			return k["id"].(string)
		}
	}
	r.t.Fatalf("no key %q", name)
	return ""
}

// expiringKey makes a key that expires in a moment. A machine may be so slow that the
// moment is over when the key is to be made, which is rejected: then a longer one.
func (r *running) expiringKey() string {
	r.t.Helper()
	for moment := 250 * time.Millisecond; moment < time.Minute; moment *= 2 {
		body := fmt.Sprintf(`{"name":"expires","workspace_id":%q,"scopes":["completions.write"],"expires_at":%q}`, r.workspace(), time.Now().Add(moment).UTC().Format(time.RFC3339Nano))
		got := r.call("POST", "/api-keys/workspace/service", body, "X-Gateway-Api-Key", adminKey)
		if got.status == 200 {
			return got.json(r.t)["key"].(string)
		}
		if !strings.Contains(got.body, "must be in the future") {
			r.t.Fatalf("%d %s", got.status, got.body)
		}
	}
	r.t.Fatal("no key can be made that expires in a minute")
	return ""
}

//lane:exhaustive
func TestEveryRouteRefusesCallersWithoutAValidKey(t *testing.T) {
	t.Parallel()
	r := start(t)
	expired := r.expiringKey()
	deleted := r.newKey(`"description":"to be deleted"`)
	for _, k := range r.admin("GET", "/api-keys?page_size=1000", "")["data"].([]any) {
		if k := k.(map[string]any); k["description"] == "to be deleted" {
			r.admin("DELETE", "/api-keys/"+k["id"].(string), "")
		}
	}
	eventually(t, func() error {
		if got := r.call("GET", "/models", "", "X-Gateway-Api-Key", expired); got.status != 401 {
			return fmt.Errorf("the expired key: %d %s", got.status, got.body)
		}
		return nil
	})
	wrong := map[string]string{
		"a letter more": workspaceKey + "x", "a letter less": workspaceKey[:len(workspaceKey)-1], "other case": strings.ToUpper(workspaceKey),
		"deleted": deleted, "its hash": identity.HashToken(workspaceKey), "a kilobyte": strings.Repeat("k", 1024), "nine kilobytes": strings.Repeat("k", 9<<10),
		"not ASCII": "schlüssel-\xff",
		"SQL":       "' OR 1=1 --", "key row": "KEY#" + identity.HashToken(workspaceKey),
	}
	before := len(r.mock.Requests(1000))
	for _, d := range r.routeCalls() {
		if d.route != nil && d.route.Public {
			continue
		}
		path := variable.ReplaceAllString(d.path, "x")
		for _, body := range []string{"", `{"model":`} { // nobody reads a stranger's body
			call := func(headers ...string) reply {
				return r.call(d.method, path, body, append([]string{"X-Gateway-Provider", "@mock"}, headers...)...)
			}
			unknown := call("X-Gateway-Api-Key", "nobody")
			if unknown.status != 401 {
				t.Errorf("%s with an unknown key: %d %s", d, unknown.status, unknown.body)
			}
			for name, key := range wrong {
				if got := call("X-Gateway-Api-Key", key); got.same() != unknown.same() {
					t.Errorf("%s tells a key that is %s from an unknown one:\n%s\n%s", d, name, got.same(), unknown.same())
				}
			}
			if got := call("X-Gateway-Api-Key", "", "Authorization", "Bearer nobody"); got.same() != unknown.same() {
				t.Errorf("%s tells an unknown bearer token from an unknown key: %s", d, got.same())
			}
			for name, headers := range map[string][]string{
				"no key": {"X-Gateway-Api-Key", ""}, "expired": {"X-Gateway-Api-Key", expired}, "basic": {"X-Gateway-Api-Key", "", "Authorization", "Basic " + workspaceKey},
				"a JWT without signature": {"X-Gateway-Api-Key", "eyJhbGciOiJub25lIn0.eyJvcmciOiJkZWZhdWx0In0."}, // is told why
			} {
				if got := call(headers...); got.status != 401 {
					t.Errorf("%s with %s: %d %s", d, name, got.status, got.body)
				}
			}
			if got := r.call(d.method, path+"?api_key="+workspaceKey+"&x-gateway-api-key="+adminKey, body, "X-Gateway-Api-Key", ""); got.status != 401 {
				t.Errorf("%s takes a key from the query: %d", d, got.status)
			}
		}
	}
	if n := len(r.mock.Requests(1000)); n != before {
		t.Errorf("%d requests of strangers reached the provider", n-before)
	}
}

// bare sends bytes as they are and reads one response.
func (r *running) bare(request string) reply {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.g.server.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		r.t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	raw, err := io.ReadAll(conn)
	if err != nil && len(raw) == 0 {
		r.t.Fatal(err)
	}
	resp, err := http.ReadResponse(newReader(raw), nil)
	if err != nil {
		r.t.Fatalf("%v: %q", err, raw)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}
}

//lane:exhaustive
func TestNeitherHostNorForwardedHeadersNorSpellingOpenARoute(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.admin("POST", "/configs", fmt.Sprintf(`{"name":"name-of-a-config","workspace_id":%q,"config":{"provider":"@mock"}}`, r.workspace()))
	spellings := []string{
		"/v1/configs", "//v1/configs", "/v1//configs", "/v1/%63onfigs", "/v1/configs/", "/v1/configs;x=1", "/V1/configs", "/v1/Configs", "/v1/./configs",
		"/v1/x/../configs", "/v1/%2e%2e/v1/configs", "/v1/%2e/configs", "/healthz/../v1/configs", "/healthz;/../v1/configs", "/v1/healthz/../configs",
		"/v1/openapi.json/../configs", "/v1/openapi.json;/../configs", "/v1/openapi.json%2f..%2fconfigs", "/v1/configs%00", "/v1/configs%2f", "/v1%2fconfigs", "/v2/configs",
		"/v1/configs?x=/healthz", "http://evil.example/v1/configs", "/v1/proxy/configs", "/v1/proxy/../configs", "/v1/chat/completions/../../configs", `/v1/\configs`, "/v1/configs#x", "/%76%31/configs",
	}
	strange := []string{
		"", "X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Host: localhost\r\nX-Forwarded-Proto: https\r\n", "X-Original-URL: /healthz\r\n", "X-Rewrite-URL: /healthz\r\n",
		"X-Forwarded-Prefix: /healthz\r\n", "Forwarded: for=127.0.0.1;host=localhost\r\n", "X-HTTP-Method-Override: OPTIONS\r\n", "X-Real-IP: 127.0.0.1\r\n", "X-Gateway-Origin-Secret: \r\n",
		"X-Golambdaproxy-Apigw-Context: {\"authorizer\":{}}\r\n", "X-Amzn-Request-Context: {}\r\n",
	}
	weak := r.newKey("") // without configs.list
	call := func(target, host, key, more string) reply {
		return r.bare(fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n%sX-Gateway-Api-Key: %s\r\nConnection: close\r\n\r\n", target, host, more, key))
	}
	if got := call("/v1/configs", "x", adminKey, ""); got.status != 200 { // the route is there
		t.Fatalf("%d %s", got.status, got.body)
	}
	for _, target := range spellings {
		plain := map[string]string{} // by key
		for _, key := range []string{"nobody", weak} {
			plain[key] = call(target, "gateway", key, "").same()
		}
		for i, more := range strange {
			host := []string{"gateway", "localhost", "127.0.0.1", "admin.internal", "evil.example"}[i%5]
			for _, key := range []string{"nobody", weak} {
				got := call(target, host, key, more)
				if got.status < 400 || got.status >= 500 || strings.Contains(got.body, "name-of-a-config") {
					t.Errorf("%s, Host %s, %q, key %.6s: %d %s", target, host, more, key, got.status, got.body)
				}
				if got.same() != plain[key] {
					t.Errorf("%s: %q and Host %s change the response from\n%s to\n%s", target, more, host, plain[key], got.same())
				}
			}
		}
	}
}

func TestAmbiguousHeadersAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	body := chatBody("@mock/gpt-4o-mini", "Hello", "")
	for name, head := range map[string]string{
		"key twice":             "X-Gateway-Api-Key: " + workspaceKey + "\r\nX-Gateway-Api-Key: nobody",
		"the same key twice":    "X-Gateway-Api-Key: " + workspaceKey + "\r\nX-Gateway-Api-Key: " + workspaceKey,
		"key twice, other case": "x-gateway-api-key: nobody\r\nX-GATEWAY-API-KEY: " + workspaceKey,
		"empty key and a key":   "X-Gateway-Api-Key:\r\nX-Gateway-Api-Key: " + workspaceKey,
		"authorization twice":   "Authorization: Bearer " + workspaceKey + "\r\nAuthorization: Bearer nobody",
		"bare CR in a value":    "X-Gateway-Api-Key: " + workspaceKey + "\r\nX-Gateway-Trace-Id: a\rX-Admin: 1",
		"NUL in a value":        "X-Gateway-Api-Key: " + workspaceKey + "\r\nX-Gateway-Trace-Id: a\x00b",
		"space before colon":    "X-Gateway-Api-Key : " + workspaceKey,
		"no colon":              "X-Gateway-Api-Key: " + workspaceKey + "\r\nX-Broken",
		"two lengths":           "X-Gateway-Api-Key: " + workspaceKey + "\r\nContent-Length: 3",
		"two hosts":             "X-Gateway-Api-Key: " + workspaceKey + "\r\nHost: other",
		"unknown coding":        "X-Gateway-Api-Key: " + workspaceKey + "\r\nTransfer-Encoding: chunked, identity",
	} {
		got := r.bare(fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n\r\n%s", len(body), head, body))
		if got.status != 400 && got.status != 501 && got.status != 401 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for _, headers := range [][]string{
		{"X-Gateway-Trace-Id", "a\tb"}, {"X-Gateway-Span-Name", "a\tb"}, {"X-Gateway-Trace-Id", strings.Repeat("t", 257)},
		{"X-Gateway-Metadata", `{"a":"` + strings.Repeat("m", 17<<10) + `"}`}, {"X-Gateway-Metadata", strings.Repeat(`{"a":`, 3000)}, {"X-Gateway-Config", "{" + strings.Repeat(`"targets":[{`, 2000)},
		{"X-Gateway-Config", `{"provider":"@mock","x":` + strings.Repeat("[", 9000)}, {"X-Gateway-Forward-Headers", "x-gateway-forward-headers"},
		{"X-Gateway-Forward-Headers", "metadata-flavor"}, {"X-Gateway-Forward-Headers", strings.Repeat("x-a,", 65)},
	} {
		if got := r.call("POST", "/chat/completions", body, headers...); got.status != 400 {
			t.Errorf("%s of %d bytes: %d %s", headers[0], len(headers[1]), got.status, got.body)
		}
	}
	if n := len(r.mock.Requests(100)); n != 0 {
		t.Errorf("%d refused requests reached the provider", n)
	}
	if got := r.call("POST", "/chat/completions", body, "X-Padding", strings.Repeat("p", 100<<10)); got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 100 KB: %d", got.status)
	}
	// Hostile headers of tracing are ignored; the request is served.
	if got := r.call("POST", "/chat/completions", body, "Baggage", strings.Repeat("=,;", 3000), "Traceparent", "00-\xff"); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestTokensThatShareALongPrefixNeverMix(t *testing.T) {
	t.Parallel()
	r := start(t)
	prefix := strings.Repeat("long-prefix-", 400)
	keys := map[string]string{}
	for i := range 4 {
		org := fmt.Sprint("org", i)
		keys[org] = prefix + org
		r.tenant(org, keys[org], prefix+org+"-data")
	}
	var wg sync.WaitGroup
	for org, key := range keys {
		wg.Go(func() {
			for range 25 {
				got, err := r.try("GET", "/workspaces", "", "X-Gateway-Api-Key", key)
				if err != nil || got.status != 200 || !strings.Contains(got.body, org+"-space") || strings.Count(got.body, "-space") != strings.Count(got.body, org+"-space") {
					t.Errorf("%s: %v %d %s", org, err, got.status, got.body)
					return
				}
				for _, other := range []string{prefix, key[:len(key)-1], key + "0", key + "-dat"} {
					if got, err := r.try("GET", "/workspaces", "", "X-Gateway-Api-Key", other); err != nil || got.status != 401 {
						t.Errorf("%s: a token of %d bytes is taken: %v %d", org, len(other), err, got.status)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// things are what stands in the default organization, by the paths of their
// collections: names that reach them, and a name that reaches nothing.
func (r *running) things() map[string]struct{ names, missing []string } {
	r.t.Helper()
	ws := r.workspace()
	config := member(r.admin("POST", "/configs", fmt.Sprintf(`{"name":"theirs","workspace_id":%q,"config":{"provider":"@mock"}}`, ws)), "data").(map[string]any)
	provider := r.admin("GET", "/providers/mock?workspace_id="+ws, "")
	integration := r.admin("GET", "/integrations/mock?workspace_id="+ws, "")
	if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", "")); got.status != 200 {
		r.t.Fatal(got.body)
	}
	log := r.logs(1, workspaceKey)[0]["id"].(string)
	texts := func(v ...any) (out []string) {
		for _, s := range v {
			out = append(out, s.(string))
		}
		return out
	}
	const uuid, ulid = "0b5e0dc5-0000-4000-8000-00000000dead", "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	slugged := []string{uuid, "no-such-thing"}
	in := fmt.Sprintf(`"workspace_id":%q`, ws)
	made := func(path, fields string) map[string]any { return r.admin("POST", path, "{"+fields+","+in+"}") }
	collection := made("/collections", `"name":"theirs"`)
	label := made("/labels", `"name":"theirs"`)
	prompt := made("/prompts", fmt.Sprintf(`"name":"theirs","collection_id":%q,"string":"Hello","parameters":{},"virtual_key":"mock","model":"gpt-4o-mini"`, collection["id"]))
	partial := made("/prompts/partials", `"name":"theirs","string":"Hello"`)
	guardrail := made("/guardrails", `"name":"theirs","checks":[{"id":"default.contains","parameters":{"words":["x"]}}],"actions":{}`)
	usage := made("/policies/usage-limits", `"name":"theirs","conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}],"type":"cost","credit_limit":5`)
	rate := made("/policies/rate-limits", `"name":"theirs","conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}],"type":"requests","unit":"rpm","value":5`)
	reference := r.admin("POST", "/secret-references", `{"name":"theirs","manager_type":"hashicorp_vault","secret_path":"kv/a","auth_config":{"vault_auth_type":"token","vault_addr":"https://vault.example.com","vault_token":"hvs.theirs"}}`)
	invite := func(email string) string {
		made := r.admin("POST", "/admin/users/invites", fmt.Sprintf(`{"email":%q,"role":"member","workspaces":[{"id":%q,"role":"member"}]}`, email, ws))
		link := made["invite_link"].(string)
		if strings.HasPrefix(email, "joined") {
			token := link[strings.LastIndex(link, "=")+1:]
			got := r.call("POST", "/invites/accept?token="+token, `{"first_name":"A","last_name":"B"}`, "X-Gateway-Api-Key", "")
			return got.json(r.t)["user_id"].(string)
		}
		return made["id"].(string)
	}
	user, invitation := invite("joined@example.com"), invite("asked@example.com")
	const nobody = `"auth_type":"oauth_auto","transport":"http","url":"https://mcp.example.com/mcp"`
	of := made("/mcp-integrations", `"name":"theirs",`+nobody)
	mcp := made("/mcp-servers", fmt.Sprintf(`"name":"theirs","mcp_integration_id":%q`, of["id"]))
	ofAgent := made("/agent-integrations", `"name":"theirs","url":"https://agent.example.com/","auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.a","secret_reference_id":"`+reference["slug"].(string)+`"}]`)
	agent := made("/agent-servers", fmt.Sprintf(`"name":"theirs","agent_integration_id":%q`, ofAgent["id"]))
	deployment := r.admin("POST", "/deployments", `{"name":"theirs","type":"production"}`)
	mapping := r.admin("POST", "/scim/workspaces", fmt.Sprintf(`{"workspace_id":%q,"role":"member","scim_group_name":"theirs"}`, ws))
	webhook := made("/webhooks", `"name":"theirs","url":"https://hooks.example.com/in"`)
	destination := made("/telemetry-destinations", `"name":"theirs","endpoint":"https://collector.example.com"`)
	idp := r.admin("POST", "/auth/sso-configurations", `{"name":"theirs","issuer":"https://login.example.com","client_id":"c","client_secret":"a secret of theirs"}`)
	ours := r.admin("POST", "/auth/domains", `{"domain":"theirs.example.com"}`)
	rated := r.call("POST", "/feedback", `{"trace_id":"theirs","value":1}`).json(r.t)["feedback_ids"].([]any)[0]
	view := made("/views", `"name":"theirs","page":"logs","query":"status=429"`)
	export := made("/logs/exports", `"filters":{},"requested_data":["id"]`)
	return map[string]struct{ names, missing []string }{
		"/views/":              {texts(view["id"]), []string{uuid}},
		"/logs/exports/":       {texts(export["id"]), []string{uuid}},
		"/mcp-integrations/":   {texts(of["id"], of["slug"]), slugged},
		"/mcp-servers/":        {texts(mcp["id"], mcp["slug"]), slugged},
		"/agent-integrations/": {texts(ofAgent["id"], ofAgent["slug"]), slugged},
		"/agent-servers/":      {texts(agent["id"], agent["slug"]), slugged},
		"/deployments/":        {texts(deployment["id"], deployment["slug"]), slugged},
		"/scim/workspaces/":    {texts(mapping["id"]), []string{uuid}},
		"/scim/tokens/":        {texts(r.admin("POST", "/scim/tokens", `{"name":"theirs"}`)["id"]), []string{uuid}},
		"/feedback/":           {texts(rated), []string{uuid}},
		"/webhooks/":           {texts(webhook["id"]), []string{uuid}},

		"/auth/sso-configurations/": {texts(idp["id"]), []string{uuid}},
		"/auth/domains/":            {texts(ours["id"]), []string{uuid}},
		"/telemetry-destinations/":  {texts(destination["id"]), []string{uuid}},

		"/notices/mails/": {[]string{r.mailed()}, []string{ulid}},

		"/users/":                 {[]string{user}, []string{uuid}},
		"/admin/users/":           {[]string{user}, []string{uuid}},
		"/users/invites/":         {[]string{invitation}, []string{uuid}},
		"/admin/users/invites/":   {[]string{invitation}, []string{uuid}},
		"/invites/":               {[]string{invitation}, []string{uuid}},
		"/collections/":           {texts(collection["id"], collection["slug"]), slugged},
		"/labels/":                {texts(label["id"]), []string{uuid}},
		"/prompts/":               {texts(prompt["id"], prompt["slug"]), slugged},
		"/prompts/partials/":      {texts(partial["id"], partial["slug"]), slugged},
		"/guardrails/":            {texts(guardrail["id"], guardrail["slug"]), slugged},
		"/policies/usage-limits/": {texts(usage["id"]), []string{uuid}},
		"/policies/rate-limits/":  {texts(rate["id"]), []string{uuid}},

		"/secret-references/": {texts(reference["id"], reference["slug"]), slugged},

		"/configs/":          {texts(config["id"], config["slug"]), slugged},
		"/providers/":        {texts(provider["id"], "mock"), slugged},
		"/virtual-keys/":     {texts(provider["id"], "mock"), slugged},
		"/integrations/":     {texts(integration["id"], "mock"), slugged},
		"/api-keys/":         {[]string{r.keyID("first workspace key"), r.keyID("first admin key")}, []string{uuid}},
		"/workspaces/":       {[]string{ws, "default"}, slugged},
		"/admin/workspaces/": {[]string{ws, "default"}, slugged},
		"/logs/":             {[]string{log}, []string{ulid}},
	}
}

// mailed uses up a budget and gives the id of the mail that reports it.
func (r *running) mailed() (id string) {
	key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":1000,"alert_threshold":1},"alert_emails":["team@example.com"]`)
	r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", key)
	eventually(r.t, func() error {
		list := r.admin("GET", "/notices/mails", "")["data"].([]any)
		if len(list) == 0 {
			return errors.New("nobody got a mail")
		}
		id = list[0].(map[string]any)["id"].(string)
		return nil
	})
	return id
}

// notThings are path variables that name no resource, or one that no key reaches: the
// users and groups of SCIM are reached by tokens of identity providers, whose tests try
// those of another organization.
var notThings = regexp.MustCompile(`\{(type|subType|groupBy|metadataKey|family|guide|provider|file|token|sessionId|scimId|resourceType|schemaUrn|organisationId)\}|^/\.well-known/`)

//lane:exhaustive
func TestAnotherOrganisationsThingsAreMissing(t *testing.T) {
	t.Parallel()
	r := start(t)
	const otherAdmin, otherData = "admin-key-of-the-other-organisation", "workspace-key-of-the-other-organisation"
	r.tenant("other", otherAdmin, otherData)
	things := r.things()
	bodies := map[string]string{
		"PUT /mcp-integrations/{integrationId}/workspaces":                `{"workspaces":[],"global_workspace_access":{"enabled":true}}`,
		"PUT /agent-integrations/{integrationId}/workspaces":              `{"workspaces":[],"global_workspace_access":{"enabled":true}}`,
		"PUT /deployments/{deploymentId}/workspaces":                      `{"workspaces":[],"global_workspace_access":{"enabled":true}}`,
		"PUT /mcp-integrations/{integrationId}/capabilities":              `{"capabilities":[{"name":"a","type":"tool","enabled":false}]}`,
		"PUT /mcp-servers/{serverId}/capabilities":                        `{"capabilities":[{"name":"a","type":"tool","enabled":false}]}`,
		"PUT /agent-integrations/{integrationId}/skills":                  `{"skills":[{"id":"a","enabled":false}]}`,
		"PUT /agent-servers/{serverId}/skills":                            `{"skills":[{"id":"a","enabled":false}]}`,
		"PUT /mcp-servers/{serverId}/user-access":                         `{"default_user_access":"deny"}`,
		"PUT /agent-servers/{serverId}/user-access":                       `{"default_user_access":"deny"}`,
		"PUT /integrations/{slug}/models":                                 `{"models":[{"slug":"gpt-4o","enabled":false}]}`,
		"PUT /integrations/{slug}/integration-models":                     `{"models":[{"slug":"gpt-4o","enabled":false}]}`,
		"PUT /integrations/{slug}/workspaces":                             `{"workspaces":[],"global_workspace_access":{"enabled":true}}`,
		"POST /api-keys/{id}/rotate":                                      `{}`,
		"POST /prompts/{promptId}/share":                                  `{"organisation":true}`,
		"PUT /prompts/{promptId}/share":                                   `{"organisation":true}`,
		"POST /prompts/{promptId}/unshare":                                `{}`,
		"POST /prompts/{promptId}/fork":                                   `{}`,
		"PUT /prompts/{promptId}/makeDefault":                             `{"version":1}`,
		"POST /prompts/{promptId}/experiments":                            `{"name":"x","variants":[{"version":1,"weight":1},{"version":2,"weight":1}]}`,
		"POST /prompts/{promptId}/experiments/{experimentId}/promote":     `{"version":1}`,
		"PUT /prompts/partials/{partialId}/makeDefault":                   `{"version":1}`,
		"POST /workspaces/{id}/users":                                     `{"users":[{"id":"0b5e0dc5-0000-4000-8000-00000000dead","role":"member"}]}`,
		"POST /admin/workspaces/{id}/users":                               `{"users":[{"id":"0b5e0dc5-0000-4000-8000-00000000dead","role":"member"}]}`,
		"PUT /workspaces/{id}/users/{userId}":                             `{"role":"member"}`,
		"PUT /admin/workspaces/{id}/users/{userId}":                       `{"role":"member"}`,
		"PUT /users/{id}/ownership":                                       `{"owner":true}`,
		"PUT /admin/users/{id}/ownership":                                 `{"owner":true}`,
		"PUT /users/{id}":                                                 `{"role":"admin"}`,
		"PUT /admin/users/{id}":                                           `{"role":"admin"}`,
		"PUT /prompts/{promptId}/versions/{versionId}":                    `{"label_id":null}`,
		"DELETE /workspaces/{id}":                                         `{"name":"default"}`,
		"PUT /workspaces/{id}/settings":                                   `{"request_logging":{"mode":"full"}}`,
		"PUT /admin/workspaces/{id}/settings":                             `{"request_logging":{"mode":"full"}}`,
		"PUT /feedback/{id}":                                              `{"value":2}`,
		"PUT /auth/domains/{domainId}":                                    `{"allow_subdomains":false}`,
		"DELETE /admin/workspaces/{id}":                                   `{"name":"default"}`,
		"PUT /logs/exports/{exportId}":                                    `{"description":"stolen"}`,
		"PUT /mcp-servers/{serverId}/tokens":                              `{"access_token":"stolen"}`,
		"PUT /policies/usage-limits/{policyId}/entities/{entityId}/reset": `{}`,
	}
	queries := map[string]string{"/logs/": "workspace_id=other-space", "/configs/": "workspace_id=other-space", "/providers/": "workspace_id=other-space", "/virtual-keys/": "workspace_id=other-space"}
	for _, collection := range []string{"/collections/", "/logs/exports/", "/prompts/", "/prompts/partials/", "/policies/usage-limits/", "/policies/rate-limits/", "/mcp-integrations/", "/mcp-servers/", "/agent-integrations/", "/agent-servers/", "/views/"} {
		queries[collection] = "workspace_id=other-space"
	}
	tried := 0
	for _, d := range r.routeCalls() {
		if d.route == nil || !strings.Contains(d.path, "{") || notThings.MatchString(d.path) {
			continue
		}
		collection := d.path[:strings.Index(d.path, "{")]
		thing, ok := things[collection]
		if !ok {
			t.Errorf("%s: nothing of its kind is tried here", d)
			continue
		}
		body := bodies[d.String()]
		if body == "" && d.method == "PUT" {
			body = `{"name":"stolen"}`
		}
		call := func(name, key, query string) reply {
			path := variable.ReplaceAllString(d.path, name)
			if strings.HasSuffix(path, "models") && d.method == "DELETE" {
				query = strings.TrimPrefix(query+"&slugs=gpt-4o", "&")
			}
			return r.call(d.method, path+"?"+query, body, "X-Gateway-Api-Key", key)
		}
		for i, name := range thing.names {
			missing := thing.missing[min(i, len(thing.missing)-1)]
			for _, query := range []string{"", queries[collection]} {
				for _, key := range []string{otherAdmin, otherData} {
					tried++
					got, want := call(name, key, query), call(missing, key, query)
					if strings.ReplaceAll(got.same(), name, "*") != strings.ReplaceAll(want.same(), missing, "*") {
						t.Errorf("%s as %s ?%s:\nforeign %s\nmissing %s", d, key, query, got.same(), want.same())
					}
					if query == queries[collection] && key == otherAdmin && got.status != 403 && got.status != 404 {
						t.Errorf("%s of another organization: %d %s", d, got.status, got.body)
					}
				}
			}
			for _, query := range []string{"workspace_id=" + r.workspace(), "workspace_id=default", "organisation_id=default"} {
				if got := call(name, otherAdmin, query); got.status != 403 && got.status != 404 {
					t.Errorf("%s ?%s as another organization: %d %s", d, query, got.status, got.body)
				}
			}
		}
	}
	if tried == 0 {
		t.Error("nothing was tried")
	}
	for path, want := range map[string]string{"/workspaces": `"other-space"`, "/configs?workspace_id=other-space": `"total":0`, "/integrations": `"total":0`, "/logs?workspace_id=other-space": `"total":0`} {
		got := r.call("GET", path, "", "X-Gateway-Api-Key", otherAdmin)
		if got.status != 200 || !strings.Contains(strings.ReplaceAll(got.body, " ", ""), want) || strings.Contains(got.body, `"slug":"mock"`) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	// Everything is still there, as it was.
	for collection, thing := range things {
		got := r.call("GET", collection+thing.names[0]+"?workspace_id="+r.workspace(), "", "X-Gateway-Api-Key", adminKey)
		if got.status == 405 {
			continue // read by lists, or with what it is about
		}
		if got.status != 200 || strings.Contains(got.body, "stolen") {
			t.Errorf("%s%s: %d %s", collection, thing.names[0], got.status, got.body)
		}
	}
}

func TestAnotherOrganisationsProvidersAndConfigsDoNotServe(t *testing.T) {
	t.Parallel()
	r := start(t)
	const otherData = "workspace-key-of-the-other-organisation"
	r.tenant("other", "admin-key-of-the-other-organisation", otherData)
	things := r.things()
	before := len(r.mock.Requests(1000))
	for _, c := range []struct{ header, prefix, collection string }{
		{"X-Gateway-Config", "", "/configs/"}, {"X-Gateway-Provider", "@", "/providers/"}, {"X-Gateway-Virtual-Key", "", "/virtual-keys/"},
	} {
		for i, name := range things[c.collection].names {
			missing := things[c.collection].missing[i]
			call := func(name string) string {
				got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", otherData, c.header, c.prefix+name)
				if got.status != 400 && got.status != 403 && got.status != 404 {
					t.Errorf("%s %s: %d %s", c.header, name, got.status, got.body)
				}
				got.header.Del("Content-Length")
				return strings.ReplaceAll(got.same(), uuids.ReplaceAllString(name, "id"), "*")
			}
			if got, want := call(name), call(missing); got != want {
				t.Errorf("%s %s:\nforeign %s\nmissing %s", c.header, name, got, want)
			}
		}
	}
	if got := r.call("GET", "/models", "", "X-Gateway-Api-Key", otherData); !strings.Contains(got.body, `"total_count":0`) {
		t.Errorf("models of another organization: %s", got.body)
	}
	if n := len(r.mock.Requests(1000)); n != before {
		t.Errorf("%d requests reached a provider of another organisation", n-before)
	}
}
