package docs

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"gateway/functions/docs/document"
)

// pages returns those of the complete gateway.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all, err := makePages(document.JSON)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for name, p := range all {
		if name != searchPath {
			out[name] = string(p.JSON())
		}
	}
	return out
}

// TestSearchFindsSections requires that every entry of the search index leads to a section
// that exists, and that the index covers guides and operations.
func TestSearchFindsSections(t *testing.T) {
	t.Parallel()
	all, err := makePages(document.JSON)
	if err != nil {
		t.Fatal(err)
	}
	var index [][3]string
	if err := json.Unmarshal(all[searchPath].JSON(), &index); err != nil {
		t.Fatal(err)
	}
	words := map[string]string{}
	for _, entry := range index {
		name, id, _ := strings.Cut(strings.TrimPrefix(entry[1], "/"), "#")
		page := all[name]
		if page == nil || id != "" && !strings.Contains(string(page.JSON()), `id="`+id+`"`) {
			t.Errorf("%q leads to %s, which does not exist", entry[0], entry[1])
		}
		words[entry[1]] = entry[2]
	}
	for address, text := range map[string]string{
		"/guides/quickstart#send-a-request": "/v1/chat/completions",
		"/guides/routing#cache":             "semantic",
		"/configs#createConfig":             "config",
	} {
		if !strings.Contains(words[address], text) {
			t.Errorf("the text of %s lacks %q: %q", address, text, words[address])
		}
	}
}

// Every operation of the document is on the overview and on a page of its family, with its path
// and scopes.
func TestTheReferenceShowsEveryOperation(t *testing.T) {
	t.Parallel()
	all := pages(t)
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string   `json:"operationId"`
			Tags        []string `json:"tags"`
			Scopes      []string `json:"x-gateway-scopes"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(document.JSON, &doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, at := range doc.Paths {
		for method, op := range at {
			n++
			line := strings.ToUpper(method) + " " + html.EscapeString(path)
			if !strings.Contains(all[""], line) {
				t.Errorf("the overview lacks %s", line)
			}
			for _, tag := range op.Tags {
				body := all[tag]
				at := strings.Index(body, `<section id="`+op.OperationID+`">`)
				if at < 0 {
					t.Errorf("the page %s lacks %s", tag, op.OperationID)
					continue
				}
				for _, scope := range op.Scopes {
					if !strings.Contains(body[at:], "<code>"+scope+"</code>") {
						t.Errorf("%s does not name the scope %s", op.OperationID, scope)
					}
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d operations", n)
	}
}

// Pages are well formed, load nothing from elsewhere, run only the script of the package, and
// their links lead to pages and sections that exist.
func TestPagesAreSelfContained(t *testing.T) {
	t.Parallel()
	all := pages(t)
	outside := regexp.MustCompile(`(?i)<(script|link|img|iframe|object|form)|(src|action)=|url\(|@import|\son[a-z]+=`)
	for name, body := range all {
		rest := strings.Replace(body, "<script>"+script+"</script>", "", 1)
		if rest = strings.Replace(rest, `<form role="search"`, "", 1); len(body)-len(rest) < len(script) {
			t.Errorf("page %q lacks the script", name)
		}
		if found := outside.FindString(rest); found != "" {
			t.Errorf("page %q has %q", name, found)
		}
		root, err := html.Parse(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for n := range root.Descendants() {
			if n.Type != html.ElementNode || n.Data != "a" {
				continue
			}
			for _, a := range n.Attr {
				if a.Key == "href" {
					checkLink(t, all, name, a.Val)
				}
			}
		}
	}
}

// checkLink follows a link as a browser does.
func checkLink(t *testing.T, all map[string]string, from, href string) {
	t.Helper()
	at := "/v1/docs"
	if from != "" {
		at += "/" + from
	}
	to, err := (&url.URL{Scheme: "https", Host: "gateway", Path: at}).Parse(href)
	if err != nil || to.Host == "gateway" && to.Path == "/v1/openapi.json" || err == nil && to.Host != "gateway" && to.Scheme == "https" {
		if err != nil {
			t.Errorf("page %q has a link to %q: %v", from, href, err)
		}
		return
	}
	body, ok := all[strings.TrimPrefix(strings.TrimPrefix(to.Path, "/v1/docs"), "/")]
	if !ok || to.Fragment != "" && !strings.Contains(body, `id="`+to.Fragment+`"`) {
		t.Errorf("page %q has a link to %q, which is nowhere", from, href)
	}
}

func TestTheReferenceIsServed(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	a := h.Do("GET", "/docs", "", nil)
	if a.Status != 200 || a.Header.Get("Content-Type") != pageType || !strings.Contains(string(a.Body), "DELETE /things/{thingId}") || !strings.HasPrefix(a.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("/docs: %d %v %.200s", a.Status, a.Header, a.Body)
	}
	if a := h.Do("GET", "/docs/things", "", nil); a.Status != 200 || !strings.Contains(string(a.Body), "configs.delete") {
		t.Errorf("/docs/things: %d %.200s", a.Status, a.Body)
	}
	if a := h.Do("GET", "/docs/guides/quickstart", "", nil); a.Status != 200 || !strings.Contains(string(a.Body), `<a href="#send-a-request">Send a request</a>`) || !strings.Contains(string(a.Body), `href="../../docs/guides/concepts"`) || !strings.Contains(a.Header.Get("Content-Security-Policy"), "script-src 'sha256-") {
		t.Errorf("/docs/guides/quickstart: %d %.200s", a.Status, a.Body)
	}
	if a := h.Do("GET", "/docs/search", "", nil); a.Status != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") || strings.Contains(a.Header.Get("Content-Security-Policy"), "script-src") || !strings.Contains(string(a.Body), `"/things#deleteThing"`) && !strings.Contains(string(a.Body), `DELETE /things/{thingId}`) {
		t.Errorf("/docs/search: %d %v %.200s", a.Status, a.Header, a.Body)
	}
	for _, path := range []string{"/docs/guides/nothing", "/docs/guides/quickstart.md", "/docs/nothing", "/docs/..", "/docs/%2e%2e", "/docs/<script>"} {
		if a := h.Do("GET", path, "", nil); a.Status != 404 || strings.Contains(string(a.Body), "script") {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}

// TestHeadingsBelongToFamilies requires that each special heading is that of a page.
func TestHeadingsBelongToFamilies(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for name, heading := range headings {
		if !strings.Contains(all[name], "<h1>"+heading+"</h1>") {
			t.Errorf("the page %s lacks the heading %q", name, heading)
		}
	}
	if !strings.Contains(all["configs"], "<h1>Configs</h1>") {
		t.Error("the heading of configs is not capitalized")
	}
}
