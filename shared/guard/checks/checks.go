package checks

import (
	"maps"
	"time"

	"gateway/shared/guard/basic"
	"gateway/shared/guard/judge"
	"gateway/shared/guard/remote"
	"gateway/shared/guard/scan"
)

// Deps are what checks need beside what they are shown.
type Deps struct {
	Now func() time.Time
}

// Makers gives what makes the function of each check, by the id of the table.
func Makers(d Deps) map[string]judge.Maker {
	all := map[string]judge.Maker{}
	for _, part := range parts(d) {
		maps.Copy(all, part)
	}
	return all
}

// parts are the packages that know checks, each with its own table.
func parts(Deps) []map[string]judge.Maker {
	return []map[string]judge.Maker{
		basic.Makers(),
		remote.Makers(),
		scan.Makers(),
	}
}
