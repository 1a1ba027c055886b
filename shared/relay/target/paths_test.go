package target

import (
	"os"
	"strings"
	"testing"

	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
)

// pathExceptions are paths of SDKs, or their prefixes, with an id that names no object of a
// workspace.
var pathExceptions = map[string]string{
	"/guardrail/{}/version/{}/apply":        "a guardrail of the account screens text and carries none",
	"/model/":                               "models: see Allowed and kept.Tuned",
	"/google-genai-sdk/{}":                  "part of a header",
	"/locations/{}":                         "prefix of other paths",
	"/projects/":                            "prefix of other paths",
	"/upload/{}/files":                      "the version of the API",
	"/upload/{}/{}:uploadToFileSearchStore": "the collection is in the name of the store: see kept.PathOf and its test",
}

// TestPathsOfSDKsAreDecided checks that each path with an id that the SDKs of the providers
// request is one of an owned object, or is not passed through with a stored credential.
func TestPathsOfSDKsAreDecided(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../dialect/reference/testdata/objects.txt")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] != "path" {
			continue
		}
		total++
		path := strings.ReplaceAll(f[2], "{}", "some-id")
		excepted := false
		for begin := range pathExceptions {
			excepted = excepted || f[2] == begin || strings.HasSuffix(begin, "/") && strings.HasPrefix(f[2], begin)
		}
		at := ownership.PathOf(path)
		owned := at.Collection != "" && at.ID != "" && !at.Ambiguous
		if !owned && !excepted && !routes.IsReserved(path) && routes.WithheldReason(path, f[1]) == "" {
			t.Errorf("%s (%s) is neither owned nor withheld", f[2], f[1])
		}
	}
	if total < 200 {
		t.Errorf("objects.txt has only %d paths", total)
	}
}
