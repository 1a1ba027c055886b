package relay

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"gateway/shared/relay/admission"
	"gateway/shared/relay/routes"
)

// A panic in a request that no server serves is a broken response: it does not end
// the process that other requests run in.
func TestAPanicOnBehalfOfSomebodyIsABrokenAnswer(t *testing.T) {
	m := NewMux(nil, []routes.Route{{Method: http.MethodPost, Path: "/chat/completions"}}) // without a relay every walk panics
	req := httptest.NewRequest(http.MethodPost, routes.BasePath+"/chat/completions", nil)
	got := httptest.NewRecorder()
	if broken := m.Run(got, req, &admission.InternalCall{Key: "of nobody"}); !broken {
		t.Errorf("the answer is whole: %d %s", got.Code, got.Body.String())
	}
	unknown := httptest.NewRequest(http.MethodPost, routes.BasePath+"/nowhere", nil)
	if broken := m.Run(got, unknown, &admission.InternalCall{Key: "of nobody"}); broken || got.Code != http.StatusNotFound {
		t.Errorf("%v %d", broken, got.Code)
	}
}
