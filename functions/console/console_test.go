package console

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"gateway/functions/console/headers"
)

func get(t *testing.T, method, target string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })).ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestPathsOfTheConsole(t *testing.T) {
	t.Parallel()
	index := body(t, get(t, "GET", Path))
	for _, c := range []struct {
		method, path string
		status       int
		caching      string
	}{
		{"GET", "/console", 308, ""},
		{"GET", "/console/", 200, "no-cache"},
		{"HEAD", "/console/logs", 200, "no-cache"},
		{"GET", "/console/logs/01J?x=1", 200, "no-cache"},
		{"GET", "/console/../etc/passwd", 200, "no-cache"},
		{"GET", "/console/assets/none.js", 404, "no-store"},
		{"GET", "/console/assets/", 404, "no-store"},
		{"GET", "/console/assets/../index.html", 404, "no-store"},
		{"POST", "/console/", 405, ""},
		{"GET", "/consoles", 418, ""},
		{"GET", "/v1/models", 418, ""},
	} {
		got := get(t, c.method, c.path)
		if got.StatusCode != c.status || got.Header.Get("Cache-Control") != c.caching {
			t.Errorf("%s %s: %d %q", c.method, c.path, got.StatusCode, got.Header.Get("Cache-Control"))
		}
		if c.status == 200 && c.method == "GET" && body(t, got) != index {
			t.Errorf("%s is not the index", c.path)
		}
		if c.status == 200 || c.status == 404 {
			for name, want := range map[string]string{"Content-Security-Policy": headers.Policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin"} {
				if got.Header.Get(name) != want {
					t.Errorf("%s: %s is %q", c.path, name, got.Header.Get(name))
				}
			}
		}
	}
}

// Limits of what a browser loads for the first page, and for all pages, in bytes of gzip.
const maxLoaded, maxAll = 60_000, 120_000

func TestTheIndexNamesOnlyHashedAssetsOfItsOwn(t *testing.T) {
	t.Parallel()
	index := body(t, get(t, "GET", Path))
	named := regexp.MustCompile(`(?:src|href)="([^"]*[^,])"`).FindAllStringSubmatch(index, -1)
	loaded := 0
	for _, m := range named {
		if !regexp.MustCompile(`^/console/assets/[a-z]+-[A-Z0-9]{8}\.(js|css)$`).MatchString(m[1]) {
			t.Errorf("the index refers to %q", m[1])
			continue
		}
		plain := get(t, "GET", m[1], "Accept-Encoding", "br, gzip;q=0")
		packed := get(t, "GET", m[1], "Accept-Encoding", "br, gzip")
		if plain.Header.Get("Content-Encoding") != "" || packed.Header.Get("Content-Encoding") != "gzip" || !strings.HasSuffix(packed.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %v %v", m[1], plain.Header, packed.Header)
		}
		raw := body(t, packed)
		loaded += len(raw)
		z, err := gzip.NewReader(strings.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(z)
		if err != nil || string(unpacked) != body(t, plain) {
			t.Errorf("%s: the packed file differs: %v", m[1], err)
		}
	}
	if len(named) < 2 || loaded > maxLoaded {
		t.Errorf("%d assets of %d bytes, at most %d", len(named), loaded, maxLoaded)
	}
	if strings.Contains(index, "<style") || strings.Contains(index, "style=") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(index) {
		t.Error("the index has inline code, which its policy forbids")
	}
	// All other files are parts that a script names, and the budget is that of all.
	all, names := 0, index
	files, err := fs.Glob(dist, "dist/assets/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := fs.ReadFile(dist, f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, ".gz") {
			all += len(raw)
		} else {
			names += string(raw)
		}
	}
	if all > maxAll {
		t.Errorf("all files have %d bytes, at most %d", all, maxAll)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(path.Base(f), ".gz"); !strings.Contains(names, name) {
			t.Errorf("nothing uses %s", name)
		}
	}
}
