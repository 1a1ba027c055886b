package reference

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFieldsOfSDKsAreDecided checks that Find knows each request field of testdata/objects.txt,
// which is generated from the SDKs of the providers, or that testdata/exceptions.txt says why
// the field names neither a model nor an object of the account.
func TestFieldsOfSDKsAreDecided(t *testing.T) {
	t.Parallel()
	reasons := map[string]string{}
	for _, line := range lines(t, "testdata/exceptions.txt") {
		key, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" || reasons[key] != "" {
			t.Errorf("exceptions.txt: %q has no reason, or is listed twice", line)
		}
		reasons[key] = reason
	}
	listed := map[string]bool{}
	for _, line := range lines(t, "testdata/objects.txt") {
		f := strings.Fields(line)
		if f[0] != "field" {
			continue
		}
		key := f[1]
		listed[key] = true
		switch found := isFound(key); {
		case found && reasons[key] != "":
			t.Errorf("exceptions.txt: Find returns %s", key)
		case !found && reasons[key] == "":
			t.Errorf("%s (%s) is neither found nor an exception", key, f[2])
		}
	}
	if len(listed) < 300 {
		t.Errorf("objects.txt has only %d fields", len(listed))
	}
	for key := range reasons {
		if !listed[key] {
			t.Errorf("exceptions.txt: no SDK has %s any more", key)
		}
	}
}

// isFound reports whether Find returns a reference for a field with one of the values that
// such fields have.
func isFound(key string) bool {
	parent, name, nested := strings.Cut(key, ".")
	values := []string{"some-id", "gs://bucket/object", "https://host.test/file", "files/abc"}
	for _, row := range fields {
		values = append(values, row.prefixes...)
	}
	for _, value := range values {
		body := fmt.Sprintf(`{%q:%q}`, parent, value)
		if nested {
			body = fmt.Sprintf(`{%q:{%q:%q}}`, parent, name, value)
		}
		for _, body := range []string{body, `{"a":` + body + `}`} {
			if found, err := Find([]byte(body)); err == nil && len(found) > 0 {
				return true
			}
		}
	}
	return false
}

// lines returns the lines of a file without comments.
func lines(t *testing.T, file string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}
