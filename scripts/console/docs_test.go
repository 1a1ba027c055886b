package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// axe runs axe-core on the page and returns the violations, with the elements concerned.
func (b *browser) axe() string {
	b.t.Helper()
	source, err := os.ReadFile("../testdeps/node_modules/axe-core/axe.min.js")
	if err != nil {
		b.t.Skip("axe-core is not installed: run make deps")
	}
	if b.eval("typeof axe") == "undefined" {
		b.eval(string(source) + ";undefined")
	}
	b.eval("window.violations = undefined; axe.run(document, {resultTypes: ['violations']}).then((r) => { violations = r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(' | ')).join('\\n'); }, (e) => { violations = String(e); }); undefined")
	b.want("window.violations !== undefined")
	return b.eval("violations")
}

// TestDocumentationInABrowser reads every page of the documentation at 360 pixels, in light and
// dark, and uses search and copy.
func TestDocumentationInABrowser(t *testing.T) {
	b := startBrowser(t)
	base := startGateway(t)
	b.size(360, "light")
	b.open(base + "/v1/docs")
	b.want("document.querySelector('h1')?.innerText.startsWith('AI gateway')")
	var pages []string
	if err := json.Unmarshal([]byte(b.eval("JSON.stringify([...document.querySelectorAll('.columns > nav a')].map((a) => a.href))")), &pages); err != nil || len(pages) < 40 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	light := map[string]bool{"docs": true, "docs-guides-reference": true, "docs-configs": true} // one page of each kind
	for _, page := range pages {
		if strings.HasSuffix(page, ".json") {
			continue
		}
		name := strings.ReplaceAll(strings.TrimPrefix(page, base+"/v1/"), "/", "-")
		b.take()
		b.open(page)
		b.want("location.href === " + fmt.Sprintf("%q", page) + " && document.readyState === 'complete' && document.querySelectorAll('h1').length === 1")
		faults, requests := b.take()
		if len(faults) > 0 || len(requests) != 1 {
			t.Errorf("%s: faults %q, requests %q", name, faults, requests)
		}
		for _, look := range []struct {
			width  int
			scheme string
		}{{360, "light"}, {390, "dark"}, {768, "light"}, {1280, "dark"}, {1280, "light"}} {
			b.size(look.width, look.scheme)
			if wide := b.eval("document.documentElement.scrollWidth - innerWidth"); !strings.HasPrefix(wide, "-") && wide != "0" {
				t.Errorf("%s at %d pixels is %s pixels too wide: %s", name, look.width, wide, b.eval("[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest('.scroll, pre')).slice(0, 3).map((e) => e.outerHTML.slice(0, 200)).join(' | ')"))
			}
			if look.width == 390 || look.scheme == "light" && look.width == 1280 && light[name] {
				if found := b.axe(); found != "" {
					t.Errorf("%s at %d pixels, %s: %s", name, look.width, look.scheme, found)
				}
			}
			b.shoot(fmt.Sprintf("%s-%d-%s", name, look.width, look.scheme))
		}
	}

	b.open(base + "/v1/docs/guides/quickstart")
	b.want("location.pathname.endsWith('/quickstart') && document.querySelector('.example button')")
	b.eval("document.activeElement?.blur()")
	b.press("/", 191, "/")
	b.want("document.activeElement.id === 'search'")
	b.do("Input.insertText", map[string]any{"text": "Semantic cache"})
	b.want("[...document.querySelectorAll('.results a')].some((a) => a.innerText === 'Route and retry › Cache') && /^\\d+ results$/.test(document.querySelector('.results [role=status]').innerText)")
	if found := b.axe(); found != "" {
		t.Errorf("search results: %s", found)
	}
	b.shoot("search-1280-light")
	b.press("ArrowDown", 40, "")
	b.want("document.activeElement === document.querySelector('.results a')")
	b.press("Enter", 13, "\r")
	b.want("location.pathname !== '/v1/docs/guides/quickstart' && document.querySelector('h1')")
	b.eval("document.getElementById('search').focus()")
	b.do("Input.insertText", map[string]any{"text": "xyzzyplugh"})
	b.want("document.querySelector('.results [role=status]').innerText === 'No results'")

	b.do("Browser.grantPermissions", map[string]any{"permissions": []string{"clipboardReadWrite", "clipboardSanitizedWrite"}})
	b.open(base + "/v1/docs/guides/quickstart")
	b.want("location.pathname.endsWith('/quickstart') && document.querySelector('.example button')")
	b.do("Page.bringToFront", nil)
	b.eval("document.querySelector('.example button').focus()")
	b.press("Enter", 13, "\r")
	b.want("document.querySelector('.example button').innerText === 'Copied'")
}
