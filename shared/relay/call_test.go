package relay

import (
	"maps"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/identity"
	"gateway/shared/pricing"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/routes"
	"gateway/shared/tenant"
)

// TestMetadataEndsWithItsCall uses one pooled call for several requests with metadata in the
// same memory.
func TestMetadataEndsWithItsCall(t *testing.T) {
	r := &Relay{Options: Options{Now: time.Now, Prices: pricing.Default()}}
	c := newCall()
	for _, x := range []struct {
		body, sent string
		defaults   map[string]string
		want       map[string]string
	}{
		{body: `{"user":"ada"}`, want: map[string]string{"_user": "ada"}},
		{body: `{}`},
		{body: `{}`, defaults: map[string]string{"team": "blue"}, want: map[string]string{"team": "blue"}},
		{body: `{"user":"eve"}`, sent: `{"a":"b"}`, want: map[string]string{"a": "b", "_user": "eve"}},
		{body: `{"user":"bob"}`, want: map[string]string{"_user": "bob"}},
	} {
		req := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(x.body))
		req.Header.Set(admission.Metadata, x.sent)
		r.doors = r.newDoors()
		c.begin(r, httptest.NewRecorder(), req, &routes.Route{Endpoint: "chatComplete", BodyMode: routes.Unified}, "", nil)
		c.req.Principal, c.req.WS = &identity.Principal{}, &tenant.Effective{}
		c.req.Principal.Defaults.Metadata = x.defaults
		if err := c.req.Headers.Read(req.Header); err != nil {
			t.Fatal(err)
		}
		if err := c.body.Read(); err != nil {
			t.Fatal(err)
		}
		describe(c)
		if !maps.Equal(c.body.Metadata, x.want) || !maps.Equal(c.rec.Metadata, x.want) || c.rec.EndUser != x.want["_user"] {
			t.Errorf("%s: %v, %v, %q; want %v", x.body, c.body.Metadata, c.rec.Metadata, c.rec.EndUser, x.want)
		}
		c.reset()
		if c.body.Metadata != nil || c.rec.Metadata != nil {
			t.Errorf("%s: metadata is left: %v %v", x.body, c.body.Metadata, c.rec.Metadata)
		}
	}
}
