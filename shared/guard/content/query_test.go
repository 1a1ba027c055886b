package content

import (
	"slices"
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
		got := InRequest("proxy", Query(raw), "").Texts
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
