package chosen

import (
	"slices"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/saved"
)

// Claims of the books stand below the credential first, and below the integration, too.
func TestClaimsStandBelowTheCredential(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ known, want []string }{
		{[]string{"print", "integration"}, []string{"print", "integration"}},
		{nil, []string{"integration"}},
	} {
		o := Bookings{newChooser(nil).Target}
		o.Target.Req.Who = new(identity.Principal)
		o.Target.To.Saved, o.Target.To.Wall = &saved.Provider{IntegrationID: "integration"}, kept.Wall{Places: c.known}
		if _, places := o.places(); !slices.Equal(places, c.want) {
			t.Errorf("%v, want %v", places, c.want)
		}
		if organisation, place := o.At(); !organisation || place != c.want[0] {
			t.Errorf("%v %s", organisation, place)
		}
	}
}
