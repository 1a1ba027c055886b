package admission

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/relay/routes"
	"gateway/shared/tenant"
)

func arrived(t *testing.T, d *Dependencies, header http.Header) *Request {
	t.Helper()
	d.Now = time.Now
	q := new(Request)
	req := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
	req.Header = header
	q.Start(d, req, &routes.Route{}, "", nil, new(egress.Lease))
	t.Cleanup(func() { q.End() })
	return q
}

// The gateway's key is never forwarded with the client's headers, in whichever of them it was
// sent, and the client's own headers are unchanged.
func TestTheGatewayKeyIsNotForwarded(t *testing.T) {
	t.Parallel()
	const key = "gw-key"
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		value := key
		if name == "Authorization" {
			value = "Bearer " + key
		}
		h := http.Header{name: {value}, "X-Other": {"x"}}
		q := arrived(t, &Dependencies{}, h)
		q.Token, q.KeyInAuth = key, name == "Authorization"
		if got := q.HeadersForProvider(); got.Get(name) != "" || got.Get("X-Other") != "x" {
			t.Errorf("%s: %v", name, got)
		}
		if h.Get(name) != value {
			t.Errorf("%s was taken from the client's own headers", name)
		}
	}
	q := arrived(t, &Dependencies{}, http.Header{"Authorization": {"Bearer theirs"}, "X-Api-Key": {"theirs"}})
	q.Token = key
	if got := q.HeadersForProvider(); got.Get("Authorization") == "" || got.Get("X-Api-Key") == "" {
		t.Errorf("a provider's own key was taken: %v", got)
	}
}

// Another credential of the gateway than the one that admitted the request is not forwarded
// either, in any header.
func TestNoCredentialOfTheGatewayIsForwarded(t *testing.T) {
	t.Parallel()
	other, _ := identity.NewSecret()
	session := "gs-" + other[3:]
	for _, name := range []string{"Authorization", "X-Api-Key", "Proxy-Token", "X-Anything", "Cookie"} {
		for _, value := range []string{session, "Bearer " + session, other, "Bearer " + other, "a=b; token=" + session} {
			q := arrived(t, &Dependencies{}, http.Header{name: {value}, "X-Gateway-Api-Key": {"gw-key"}, "X-Other": {"x"}})
			q.Token = "gw-key"
			if got := q.HeadersForProvider(); got.Get(name) != "" || got.Get("X-Other") != "x" || !q.HoldsKey(name) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

func TestTheHashOfAKeyNamesIt(t *testing.T) {
	t.Parallel()
	q := arrived(t, &Dependencies{}, http.Header{})
	q.Token = "gw-key"
	if q.KeyHash() != identity.HashToken("gw-key") {
		t.Error("the hash is of another key")
	}
	q.Internal = &InternalCall{Key: "of another"}
	if q.KeyHash() != "of another" {
		t.Error("a request on behalf of somebody is that key's")
	}
}

// Logging of bodies: the organization's enforcement overrides its setting, which overrides the
// request.
func TestWhatIsLogged(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, c := range []struct {
		enforced *bool
		setting  string
		asked    bool // the request disables logging
		logs     bool
	}{
		{&yes, tenant.LogMetrics, true, true}, {&no, "", false, false}, {nil, tenant.LogMetrics, false, false}, {nil, "", true, false}, {nil, "", false, true},
	} {
		q := arrived(t, &Dependencies{}, http.Header{})
		q.Org = &tenant.Organisation{Settings: tenant.Settings{EnforceDebug: c.enforced, RequestLogging: c.setting, BlockInlineConfig: c.asked}}
		q.Headers.NoBodies = c.asked
		if q.LogsBodies() != c.logs {
			t.Errorf("%+v: %t", c, q.LogsBodies())
		}
		if q.BlocksInline() != c.asked {
			t.Errorf("%+v: inline configuration is refused: %t", c, q.BlocksInline())
		}
	}
	if arrived(t, &Dependencies{}, http.Header{}).LogsBodies() {
		t.Error("bodies of an unknown caller are kept")
	}
	q := arrived(t, &Dependencies{BlockInline: true}, http.Header{})
	q.Org = &tenant.Organisation{}
	if f := fault.From(q.Blocked(fault.InlineHostBlocked, "x", "a host")); !q.BlocksInline() || f.Field != "x" {
		t.Errorf("the installation's order does not hold: %v", f)
	}
}

func TestALifeEndsOnce(t *testing.T) {
	t.Parallel()
	var told []string
	q := arrived(t, &Dependencies{Fault: func(where, request string, err error) { told = append(told, where, request, err.Error()) }, DrainTime: time.Hour}, http.Header{})
	done := 0
	q.Defer(func() { done++ })
	q.OnClientGone()
	q.Fail("nothing", nil)
	q.Fail("here", errors.New("broken"))
	if q.RunDeferred(); done != 1 || !slices.Equal(told, []string{"here", q.ULID, "broken"}) {
		t.Errorf("%d, %v", done, told)
	}
	if q.Ctx.Err() != nil {
		t.Error("it ended with its client")
	}
	if left := q.End(); len(left) != 0 || !errors.Is(q.Ctx.Err(), context.Canceled) {
		t.Errorf("it goes on: %v", q.Ctx.Err())
	}
}
