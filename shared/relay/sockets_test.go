package relay

import (
	"slices"
	"testing"

	"gateway/shared/relay/session"
)

// dropped records that a connection was ended.
type dropped struct {
	session.Conn
	name string
	all  *[]string
}

func (d dropped) Drop() { *d.all = append(*d.all, d.name) }

// A panic only ends its own session: both connections are dropped, and the session is no longer
// waited for.
func TestAPanicEndsItsSessionAlone(t *testing.T) {
	t.Parallel()
	var all []string
	near, far := dropped{name: "near", all: &all}, dropped{name: "far", all: &all}
	end := func() { all = append(all, "end") }
	new(Relay).carryOn(nil, carry{near, far, func() { panic("a fault") }, end})
	new(Relay).carryOn(nil, carry{near, nil, func() { panic("a fault") }, end})
	if want := []string{"near", "far", "end", "near", "end"}; !slices.Equal(all, want) {
		t.Errorf("%q", all)
	}
}
