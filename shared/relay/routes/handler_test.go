package routes

import (
	"testing"

	"gateway/shared/dialect/live"
	"gateway/shared/relay/session"
)

// served is a pipeline that records the called method.
type served struct{ what string }

func (s *served) note(what string) error      { s.what = what; return nil }
func (s *served) Model() error                { return s.note("model") }
func (s *served) List(*ModelList) error       { return s.note("list") }
func (s *served) Render() error               { return s.note("render") }
func (s *served) Compose(*Composed) error     { return s.note("compose") }
func (s *served) Mint() error                 { return s.note("mint") }
func (s *served) ServeDryRun(*DryRun) error   { return s.note("rehearse") }
func (s *served) Call(Protocol) error         { return s.note("call") }
func (s *served) RunTools(*ToolRun) error     { return s.note("tools") }
func (s *served) OpenSession() error          { return s.note("session") }
func (s *served) AwaitOpening(*Live) error    { return s.note("opening") }
func (s *served) Converse(of *Dialogue) error { return s.note("converse") }

// maker makes no connections.
type maker struct{ session.Sockets }

// silent responds to nothing.
type silent struct{}

func (silent) Serve(*ProtocolCall) error { return nil }

// TestHandlersServeTheirKind: each handler calls its own part of the pipeline, and the stages that
// read a request learn from it what the route is.
func TestHandlersServeTheirKind(t *testing.T) {
	t.Parallel()
	opens := &Route{Handler: &Live{Sockets: maker{}, Wire: func() live.Wire { return nil }}}
	for _, c := range []struct {
		rt      *Route
		want    string
		sockets bool
	}{
		{&Route{}, "model", false},
		{&Route{Handler: Model{}}, "model", false},
		{&Route{Handler: &ModelList{}}, "list", false},
		{&Route{Handler: &Prompt{}}, "model", false},
		{&Route{Handler: &Prompt{Render: true}}, "render", false},
		{&Route{Handler: &Composed{}}, "compose", false},
		{&Route{Handler: Secret{Format: ClientSecret}}, "mint", false},
		{&Route{Handler: &DryRun{}}, "rehearse", false},
		{&Route{Handler: Calls{silent{}}}, "call", false},
		{&Route{Handler: &ToolRun{}}, "tools", false},
		{&Route{Handler: &Realtime{Sockets: maker{}}}, "session", true},
		{opens, "opening", true},
		{opens.WithConn(new(session.ClientConn), maker{}), "session", true},
		{&Route{Handler: &Dialogue{Sockets: maker{}}}, "converse", true},
	} {
		var got served
		if err := c.rt.Handle(&got); err != nil || got.what != c.want {
			t.Errorf("%T: %q, %v; want %q", c.rt.Handler, got.what, err, c.want)
		}
		if (c.rt.Sockets() != nil) != c.sockets {
			t.Errorf("%T: sockets %v", c.rt.Handler, c.rt.Sockets())
		}
		without := c.rt.WithoutSockets()
		if without.Sockets() != nil || without.Converses() != c.rt.Converses() || (without.Live() == nil) != (c.rt.Live() == nil) || without.TakesSecrets() != c.rt.TakesSecrets() {
			t.Errorf("%T: without sockets it is another route", c.rt.Handler)
		}
		if (c.rt.Protocol() != nil) != (c.want == "call") || (c.rt.SecretFormat() != 0) != (c.want == "mint") || (c.rt.Prompt() != nil) != isPrompt(c.rt) {
			t.Errorf("%T: the stages read it as another kind", c.rt.Handler)
		}
	}
	if opens.ClientConn() != nil || opens.WithConn(new(session.ClientConn), nil).ClientConn() == nil {
		t.Error("a session is open before its first message, or not after it")
	}
}

func isPrompt(rt *Route) bool {
	_, is := rt.Handler.(*Prompt)
	return is
}
