package content

import (
	"slices"
	"strings"
	"testing"
)

// TestQueriesAreRead: whatever is no parameter of the API and no credential is a text.
func TestQueriesAreRead(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		"": nil,
		"api-version=2024-10-21&limit=20&alt=sse":            nil,
		"key=AIza-secret&x-amz-signature=abc&access_token=x": nil,
		"q=FORBIDDENWORD":                  {"FORBIDDENWORD"},
		"query=two+words&after=id_1":       {"two words"},
		"order=two%20words":                {"two words"},
		"Limit=20&unknown=%46ORBIDDENWORD": {"FORBIDDENWORD"},
		"FORBIDDENWORD":                    {"FORBIDDENWORD"},
		"a%20b=c":                          {"a b", "c"},
		"q=%zzFORBIDDENWORD":               {"q=%zzFORBIDDENWORD"},
		"q=%ff":                            {"\ufffd"},
		"q=a;b":                            {"a;b"},
	} {
		got := InRequest("proxy", Address("/v1/threads/thread_abc123/messages", raw), "").Texts
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// TestPathsAreRead: a segment that cannot be an identifier is a text.
func TestPathsAreRead(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][]string{
		"/v1/models/gpt-4o:generateContent": nil,
		"/prompt/a FORBIDDENWORD":           {"a FORBIDDENWORD"},
		"/prompt/verboten\u00e4/x":          {"verboten\u00e4"},
		"/" + strings.Repeat("a", 300):      {strings.Repeat("a", 300)},
	} {
		if got := InRequest("proxy", Address(path, ""), "").Texts; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
