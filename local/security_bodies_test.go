package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gateway/functions/assembly"
	"gateway/shared/admin"
	"gateway/shared/relay"
)

// taker is a route that reads a body, with a body that gets past the syntax.
type taker struct {
	method, path, valid, key string
	limit                    int64
	refuses                  int // status of what is no JSON
}

// takers are all routes that read JSON.
func (r *running) takers() (all []taker) {
	for _, rt := range assembly.DataPlane() {
		if rt.BodyMode != relay.Unified {
			continue
		}
		limit := rt.MaxBody
		if limit == 0 {
			limit = relay.DefaultMaxBody
		}
		all = append(all, taker{rt.Method, rt.Path, samples[rt.Method+" "+rt.Path].body, workspaceKey, limit, 400})
	}
	provider := r.admin("POST", "/scim/tokens", `{"name":"hostile"}`)["token"].(string)
	for _, d := range r.routeCalls() {
		if d.route == nil || d.route.Body == nil {
			continue
		}
		limit := d.route.MaxBody
		if limit == 0 {
			limit = admin.DefaultMaxBody
		}
		key := adminKey
		if strings.HasPrefix(d.path, "/feedback") || strings.HasPrefix(d.path, "/otel/") || d.method+d.path == "POST/logs" {
			key = workspaceKey // no other key rates answers, and tells of requests
		}
		if slices.Contains(d.route.Scopes, "scim.provision") {
			key = provider
		}
		all = append(all, taker{d.method, variable.ReplaceAllString(d.path, "x"), `{"name":"x"}`, key, limit, 400})
	}
	return all
}

//lane:exhaustive
func TestBodiesAreBoundedOnEveryRoute(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, k := range r.takers() {
		head := fmt.Sprintf("%s /v1%s HTTP/1.1\r\nHost: gateway\r\nX-Gateway-Api-Key: %s\r\nContent-Type: application/json\r\nConnection: close\r\n", k.method, k.path, k.key)
		announced := r.bare(fmt.Sprintf("%sContent-Length: %d\r\n\r\n", head, k.limit+1))
		if announced.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s %s with %d bytes announced: %d %s", k.method, k.path, k.limit+1, announced.status, announced.body)
		}
		short := r.bare(head + "Content-Length: 500\r\n\r\n" + k.valid)
		if short.status != 400 {
			t.Errorf("%s %s whose body ends early: %d %s", k.method, k.path, short.status, short.body)
		}
	}
	// Without a length the bound is that of what arrives.
	for _, c := range []struct {
		path, key, begin string
		megabytes        int
	}{
		{"/embeddings", workspaceKey, `{"model":"@mock/text-embedding-3-small","input":"`, 21},
		{"/configs", adminKey, `{"name":"`, 2},
	} {
		if status := r.endless(c.path, c.key, c.begin, c.megabytes); status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s with %d MB in chunks: %d", c.path, c.megabytes, status)
		}
	}
	if n := len(r.mock.Requests(10)); n != 0 {
		t.Errorf("%d requests reached the provider", n)
	}
}

// endless posts megabytes of one string in chunks, without a length.
func (r *running) endless(path, key, begin string, megabytes int) (status int) {
	r.t.Helper()
	body, w := io.Pipe()
	go func() {
		defer w.Close()
		chunk := strings.Repeat("x", 1<<20)
		_, err := io.WriteString(w, begin)
		for i := 0; i < megabytes && err == nil; i++ {
			_, err = io.WriteString(w, chunk)
		}
	}()
	req, err := http.NewRequest("POST", r.base+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Gateway-Api-Key", key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

//lane:exhaustive
//lane:standard
func TestHostileBodiesAreRefusedOnEveryRoute(t *testing.T) {
	t.Parallel()
	r := start(t)
	nested := func(open, shut string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) }
	for _, k := range r.takers() {
		with := func(member string) string { return "{" + member + "," + k.valid[1:] }
		for name, c := range map[string]struct {
			body   string
			refuse bool // rejected for its form; else it must only do no harm
		}{
			"65 levels":           {with(`"x":` + nested("[", "]", 65)), true},
			"65 levels of maps":   {with(`"x":` + nested(`{"a":`, "}", 65)), true},
			"100,000 brackets":    {with(`"x":` + strings.Repeat("[", 100_000)), true},
			"NUL":                 {"\x00" + k.valid, true},
			"NUL behind":          {k.valid + "\x00", true},
			"NUL in a string":     {with("\"x\":\"a\x00b\""), true},
			"byte order mark":     {"\ufeff" + k.valid, true},
			"UTF-16":              {"{\x00\"\x00a\x00\"\x00:\x001\x00}\x00", true},
			"two values":          {k.valid + k.valid, true},
			"a list":              {"[" + k.valid + "]", true},
			"a list of nothing":   {"[]", true},
			"null":                {"null", true},
			"a number":            {"1e999", true},
			"only spaces":         {strings.Repeat(" \t\r\n", 1000), true},
			"not UTF-8":           {with("\"x\":\"\xff\xfe\xc0\x80\""), false},
			"half a surrogate":    {with(`"x":"\ud800"`), false},
			"not UTF-8 in a key":  {with("\"\xff\":1"), false},
			"proto":               {with(`"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}`), false},
			"other organisation":  {with(`"organisation_id":"other","org":"other","role":"owner"`), false},
			"a number of 1 MB/10": {with(`"x":` + strings.Repeat("9", 100_000)), false},
			"10,000 members":      {with(`"x":{` + strings.TrimSuffix(manyMembers(10_000), ",") + `}`), false},
		} {
			got := r.call(k.method, k.path, c.body, "X-Gateway-Api-Key", k.key)
			if got.status >= 500 && got.status != http.StatusNotImplemented || c.refuse && got.status != k.refuses {
				t.Errorf("%s %s, %s: %d %.300s", k.method, k.path, name, got.status, got.body)
			}
			if !utf8.ValidString(got.body) && !strings.HasPrefix(got.header.Get("Content-Type"), "audio/") || got.status != 200 && len(got.body) > 4<<10 {
				t.Errorf("%s %s, %s: an answer of %d bytes, %.300q", k.method, k.path, name, len(got.body), got.body)
			}
		}
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	return b.String()
}

// TestTextOfAnyKindIsServedAndItsLogCanBeRead sends well-formed requests whose
// text is odd; what the provider takes, the log shows.
func TestTextOfAnyKindIsServedAndItsLogCanBeRead(t *testing.T) {
	t.Parallel()
	r := start(t)
	texts := []string{`\u0000`, `\ud83d\ude00`, `\ud800`, "\xff\xfe", "\xed\xa0\x80", "\u2028\u202e\ufeff", `\u001b[2J`, `</script><script>`, `\"}],\"model\":\"x`}
	n := 0
	for _, model := range []string{"@mock/gpt-4o-mini", "@mock-anthropic/claude-sonnet-4-5"} {
		for _, path := range []string{"/chat/completions", "/messages"} {
			for _, text := range texts {
				n++
				got := r.call("POST", path, `{"model":"`+model+`","max_tokens":50,"user":"`+text+`","messages":[{"role":"user","content":"`+text+`"}]}`,
					"X-Gateway-Metadata", `{"a":"`+text+`"}`, "Baggage", "b="+text)
				if got.status != 200 && got.status != 400 {
					t.Errorf("%s %s %q: %d %s", path, model, text, got.status, got.body)
				}
			}
		}
	}
	for _, row := range r.logs(n, workspaceKey) {
		got := r.call("GET", "/logs/"+member(row, "id").(string), "")
		if got.status != 200 || !utf8.ValidString(got.body) || got.json(t)["bodies_unreadable"] == true {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// TestConnectionHeadersEndHere sends headers that belong to a single connection, or that
// reveal something of the client, in both directions.
//
//lane:standard
func TestConnectionHeadersEndHere(t *testing.T) {
	t.Parallel()
	r := start(t)
	arrived := make(chan http.Header, 8)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		arrived <- req.Header.Clone()
		for _, h := range [][2]string{
			{"Connection", "X-Hop-Answer"}, {"X-Hop-Answer", "1"}, {"Keep-Alive", "timeout=5"}, {"Proxy-Authenticate", "Basic"}, {"Set-Cookie", "a=b"}, {"Upgrade", "h2c"},
			{"X-Gateway-Provider", "forged"}, {"X-Gateway-Trace-Id", "forged"}, {"X-Gateway-Cache-Status", "HIT"}, {"Strict-Transport-Security", "max-age=1"}, {"Alt-Svc", "h3=\":1\""},
			{"Clear-Site-Data", "*"}, {"X-Kept", "kept"}, {"Content-Type", "application/json"},
		} {
			w.Header().Add(h[0], h[1])
		}
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`)
	}))
	defer upstream.Close()
	private := []string{
		"Te", "Trailer", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Upgrade", "Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip",
		"X-Amz-Security-Token", "X-Amzn-Trace-Id", "Cloudfront-Viewer-Country", "Metadata", "Metadata-Flavor", "X-Google-Metadata-Request", "X-Aws-Ec2-Metadata-Token", "X-Gateway-Metadata", "X-Gateway-Api-Key",
		"X-Gateway-Origin-Secret", "X-Hop-Request", "Via", "X-Golambdaproxy-Apigw-Context", "Expect-Nothing",
	}
	var head strings.Builder
	for _, name := range private[:len(private)-1] {
		if name != "X-Gateway-Api-Key" {
			value := "private"
			if name == "X-Gateway-Metadata" {
				value = `{"a":"private"}`
			}
			fmt.Fprintf(&head, "%s: %s\r\n", name, value)
		}
	}
	body := chatBody("gpt-4o-mini", "Hello", "")
	for path, forward := range map[string]string{
		"/v1/proxy/chat/completions": "",
		"/v1/chat/completions":       "X-Gateway-Forward-Headers: x-other,cookie,te,upgrade,keep-alive,forwarded,x-forwarded-for,x-real-ip,x-amz-security-token,cloudfront-viewer-country,x-gateway-metadata,x-gateway-api-key,x-gateway-origin-secret,proxy-authorization,via,host,content-length,transfer-encoding\r\n",
	} {
		got := r.bare(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: gateway\r\nConnection: X-Hop-Request, close\r\n%s%sX-Other: other\r\nX-Gateway-Api-Key: %s\r\nX-Gateway-Provider: openai\r\nAuthorization: Bearer my-own\r\nX-Gateway-Custom-Host: %s/v1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			path, head.String(), forward, workspaceKey, upstream.URL, len(body), body))
		if got.status != 200 {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		up := <-arrived
		for _, name := range private {
			if up[name] != nil {
				t.Errorf("%s: %s: %q reached the provider", path, name, up[name])
			}
		}
		if up.Get("X-Other") != "other" || up.Get("Authorization") != "Bearer my-own" {
			t.Errorf("%s: what may pass did not: %v", path, up)
		}
		for _, name := range []string{"X-Hop-Answer", "Keep-Alive", "Proxy-Authenticate", "Set-Cookie", "Upgrade", "Strict-Transport-Security", "Alt-Svc", "Clear-Site-Data"} {
			if got.header[name] != nil {
				t.Errorf("%s: %s: %q came back", path, name, got.header[name])
			}
		}
		if got.header.Get("X-Gateway-Provider") != "openai" || got.header.Get("X-Gateway-Trace-Id") == "forged" || got.header.Get("X-Gateway-Cache-Status") == "HIT" {
			t.Errorf("%s: a forged header came back: %v", path, got.header)
		}
		if path == "/v1/proxy/chat/completions" && got.header.Get("X-Kept") != "kept" {
			t.Errorf("%s: what may pass did not: %v", path, got.header)
		}
	}
}

// TestTheGatewaysKeyStaysHere sends it under every name that clients use.
func TestTheGatewaysKeyStaysHere(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, headers := range [][]string{
		{"X-Gateway-Api-Key", "", "Authorization", "Bearer " + workspaceKey},
		{"X-Gateway-Api-Key", "", "Authorization", "bearer  " + workspaceKey + " "},
		{"Authorization", "Bearer " + workspaceKey},
		{"Authorization", "Bearer " + workspaceKey, "X-Gateway-Forward-Headers", "authorization"},
		{"X-Gateway-Api-Key", "", "Authorization", "Bearer " + workspaceKey, "X-Gateway-Forward-Headers", "authorization,x-gateway-api-key"},
	} {
		for _, way := range [][]string{
			{"X-Gateway-Provider", "@mock"}, {"X-Gateway-Provider", "@mock-anthropic"},
			{"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", r.mockBase()}, {"X-Gateway-Provider", "anthropic", "X-Gateway-Custom-Host", r.mockBase()},
			{"X-Gateway-Config", `{"provider":"openai","custom_host":"` + r.mockBase() + `"}`},
		} {
			for _, path := range []string{"/proxy/echo/x", "/chat/completions", "/messages"} {
				r.call("POST", path, chatBody("claude-sonnet-4-5", "Hello", `,"max_tokens":5`), append(way[:len(way):len(way)], headers...)...)
			}
		}
	}
	for _, req := range r.mock.Requests(1000) {
		if text := fmt.Sprint(req.Headers, req.Query); strings.Contains(text, workspaceKey) {
			t.Errorf("%s %s: the gateway's key reached the provider: %s", req.Method, req.Path, text)
		}
	}
}

// TestPagesAreBoundedOnEveryList asks each list for more than a page may hold.
//
//lane:exhaustive
func TestPagesAreBoundedOnEveryList(t *testing.T) {
	t.Parallel()
	r := start(t)
	lists := 0
	for _, d := range r.routeCalls() {
		if d.route == nil || d.method != "GET" {
			continue
		}
		for _, f := range d.route.Query {
			if f.Name != "page_size" {
				continue
			}
			lists++
			path := strings.Replace(variable.ReplaceAllString(d.path, "x"), "/groups/x", "/groups/ai-models", 1)
			for _, q := range []string{"page_size=1000000", "page_size=-1", "page_size=1e3", "page_size=0x10", "current_page=-1", "current_page=99999999999999999999", "page_size=10&page_size=20"} {
				if strings.HasPrefix(q, "current_page") && !slices.ContainsFunc(d.route.Query, func(f admin.Field) bool { return f.Name == "current_page" }) {
					continue
				}
				got := r.call("GET", path+"?workspace_id=default&"+lastHour()+"&"+q, "", "X-Gateway-Api-Key", adminKey)
				if got.status != 400 || !strings.Contains(got.body, "page") {
					t.Errorf("%s?%s: %d %.200s", d, q, got.status, got.body)
				}
			}
		}
	}
	if lists < 8 {
		t.Errorf("only %d lists have pages", lists)
	}
}
