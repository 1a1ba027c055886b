// Package exportrow says where exports and their runs stand in the store, for those that end
// them with their workspace and read no logs.
package exportrow

import (
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Kind is the kind of the records of exports.
const Kind resource.Kind = "EXPORT"

// Run is the row of the run of an export. A run whose row is gone ends at its next part,
// and leaves no file.
func Run(sc store.Scope, id string) store.Key { return sc.Partition("EXPORT-RUN").Key(id) }
