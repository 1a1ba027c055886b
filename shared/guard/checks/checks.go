// Package checks is the registry that maps the checks of the table to their functions.
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

// Deps are the dependencies of checks.
type Deps struct {
	Now    func() time.Time
	Signer provider.Signer // exchanges credentials of vendors for short-lived ones
	LookUp remote.LookUp   // resolves host names in responses
}

// Makers returns the maker of each check by id.
func Makers(d Deps) map[string]judge.Maker {
	all := map[string]judge.Maker{}
	for _, part := range parts(d) {
		maps.Copy(all, part)
	}
	return all
}

// parts returns the tables of the packages with checks.
func parts(d Deps) []map[string]judge.Maker {
	return []map[string]judge.Maker{
		basic.Makers(),
		remote.Makers(d.Now, d.LookUp),
		token.Makers(d.Now),
		scan.Makers(),
		vendors.Makers(vendors.Deps{Now: d.Now, Signer: d.Signer}),
	}
}
