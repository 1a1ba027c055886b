package target

import (
	"reflect"
	"strings"
	"testing"

	"gateway/shared/relay/admission"
	"gateway/shared/route"
)

// What a config's target and a request's headers may contain: a new field that holds a
// credential or moves a host must be added to the rule that nothing saved goes to an
// address of the caller's.
func TestLeavesAndHeadersHaveNoUnknownMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of    any
		known string
	}{
		{route.Leaf{}, "Path Name Weight Slug Provider APIKey Fields Passthrough PromptID Model DefaultModel Retry Cache PromptCache Breaker Timeout FirstToken Idle Hold CustomHost Forward Lenient Input Output Compiled FetchIntegrated edits"},
		{admission.Headers{}, "TraceID SpanID ParentSpanID SpanName Traced Sampled named Session Agent ParentAgent Provider VirtualKey Config CustomHost Timeout Lenient NoBodies StrictTranslation Forward Sensitive Metadata"},
	} {
		typ := reflect.TypeOf(c.of)
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; !strings.Contains(" "+c.known+" ", " "+name+" ") {
				t.Errorf("%s.%s: say in stays.go what it does, then here", typ.Name(), name)
			}
		}
	}
}

func TestASavedHostIsTheSameOnlyWhole(t *testing.T) {
	t.Parallel()
	const own = "https://models.example.com/v1"
	for asked, same := range map[string]bool{
		own: true, own + "/": true, "https://models.example.com": false, "http://models.example.com/v1": false, "https://models.example.com:444/v1": false,
		"https://user@models.example.com/v1": false, own + "?x": false, "https://models.example.com.evil.example/v1": false, own + "/../x": false, "": false, "::": false,
	} {
		if sameHost(asked, own) != same {
			t.Errorf("%q: %v", asked, !same)
		}
	}
	if sameHost("", "") {
		t.Error("nothing saved is no host")
	}
}
