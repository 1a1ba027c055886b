package session

import (
	"strings"
	"testing"

	"gateway/shared/dialect/realtime"
)

// Clients repeat the model by the name with which they opened the session; the provider is
// sent its own.
func TestSessionsRepeatTheirModel(t *testing.T) {
	t.Parallel()
	const update = `{"type":"session.update","session":{"instructions":"Be brief","model":"NAME","tools":[{"type":"function","name":"f"}]}}`
	for name, accepted := range map[string]bool{"gpt-realtime": true, "@slug/gpt-realtime": true, "alias": true, "gpt-4o": false, "@other/gpt-realtime": false} {
		var far, near []string
		s := &Session{
			Client: newSide(func(p []byte) { near = append(near, string(p)) }), Provider: newSide(func(p []byte) { far = append(far, string(p)) }), Controller: admitting{},
			Model: "gpt-realtime", Names: []string{"@slug/gpt-realtime", "alias"},
		}
		var reader realtime.Reader
		if err := s.fromClient(&reader, false, []byte(strings.Replace(update, "NAME", name, 1))); err != nil {
			t.Fatal(err)
		}
		if accepted && (len(far) != 1 || far[0] != strings.Replace(update, "NAME", "gpt-realtime", 1) || len(near) != 0) {
			t.Errorf("%s: the provider was sent %q, the client %q", name, far, near)
		}
		if !accepted && (len(far) != 0 || len(near) != 1 || !strings.Contains(near[0], "session.model")) {
			t.Errorf("%s: the provider was sent %q, the client %q", name, far, near)
		}
	}
}

func TestNamesOfTheModelOfASession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slug   string
		opened []string
		want   string
	}{
		{"", nil, ""}, {"", []string{"", ""}, ""},
		{"", []string{"m", "m"}, "m"},
		{"s", []string{"m"}, "@s/m m"},
		{"s", []string{"@s/m", "m"}, "@s/m m"},
		{"s", []string{"@other/m"}, "@other/m @s/m m"},
		{"s", []string{"@s/org/m"}, "@s/org/m org/m"},
		{"", []string{"@nothing"}, "@nothing"},
	} {
		if got := strings.Join(Names(c.slug, c.opened...), " "); got != c.want {
			t.Errorf("%q %v: %s, want %s", c.slug, c.opened, got, c.want)
		}
	}
}

// A close of the provider is the provider's, whatever its code.
func TestWhoEndedASession(t *testing.T) {
	t.Parallel()
	for _, code := range []int{Normal, CloseGoingAway, Policy, 1011, 4000} {
		r := Result{Code: code, ByProvider: true}
		if got := r.Summary(); got != "closed_by_provider" {
			t.Errorf("%d: %s", code, got)
		}
		s := &Session{Client: newSide(func([]byte) {}), Provider: newSide(func([]byte) {}), Controller: admitting{}, Model: "m"}
		s.providerLeft(&Ended{code, "bye"})
		if r := s.state.result(nil); !r.ByProvider || r.Summary() != "closed_by_provider" {
			t.Errorf("%d: %+v", code, r)
		}
	}
	for code, want := range map[int]string{CloseGoingAway: "ended_by_restart", Policy: "ended_by_policy", CloseAbnormal: "lost"} {
		if got := (&Result{Code: code}).Summary(); got != want {
			t.Errorf("%d: %s", code, got)
		}
	}
}

// TestClosesCrossBothWays: each side has the code and the reason of the other's close.
func TestClosesCrossBothWays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left error
		want Ended
	}{
		{&Ended{Normal, "done"}, Ended{Normal, "done"}},
		{&Ended{CloseGoingAway, "page closed"}, Ended{CloseGoingAway, "page closed"}},
		{&Ended{4001, "hung up"}, Ended{4001, "hung up"}},
		{&Ended{NoCode, ""}, Ended{Normal, ""}},
		{&Ended{CloseAbnormal, ""}, Ended{Normal, ""}},
		{&Ended{NotUTF8, "a text message must be UTF-8"}, Ended{Normal, ""}},
		{&Ended{Policy, "x"}, Ended{Normal, ""}},
	} {
		near, far := newSide(func([]byte) {}), newSide(func([]byte) {})
		s := &Session{Client: near, Provider: far, Controller: admitting{}, Model: "m"}
		s.clientLeft(c.left)
		if far.last != c.want {
			t.Errorf("the client left with %v, the provider was told %v", c.left, far.last)
		}
		near, far = newSide(func([]byte) {}), newSide(func([]byte) {})
		s = &Session{Client: near, Provider: far, Controller: admitting{}, Model: "m"}
		s.providerLeft(&c.want)
		if near.last != c.want {
			t.Errorf("the provider left with %v, the client was told %v", c.want, near.last)
		}
	}
}
