package checks

import (
	"maps"
	"time"

	"gateway/shared/guard/basic"
	"gateway/shared/guard/judge"
	"gateway/shared/guard/remote"
	"gateway/shared/guard/scan"
	"gateway/shared/guard/token"
	"gateway/shared/guard/vendors"
	"gateway/shared/provider"
)

// Deps are what checks need beside their subject.
type Deps struct {
	Now    func() time.Time
	Signer provider.Signer // trades credentials of vendors for short-lived ones
	LookUp remote.LookUp   // looks up names that answers contain
}

// Makers gives, by the id of the table, what makes the function of each check.
func Makers(d Deps) map[string]judge.Maker {
	all := map[string]judge.Maker{}
	for _, part := range parts(d) {
		maps.Copy(all, part)
	}
	return all
}

// parts returns the packages with checks, each with a table separate.
func parts(d Deps) []map[string]judge.Maker {
	return []map[string]judge.Maker{
		basic.Makers(),
		remote.Makers(d.Now, d.LookUp),
		token.Makers(d.Now),
		scan.Makers(),
		vendors.Makers(vendors.Deps{Now: d.Now, Signer: d.Signer}),
	}
}
