// Package exportrow has the keys of exports and their runs in the store, for code that
// deletes them with their workspace and reads no logs.
package exportrow

import (
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Kind is the kind of the records of exports.
const Kind resource.Kind = "EXPORT"

// Run returns the key of an export's run. A run without a row ends at its next part and
// leaves no file.
func Run(sc store.Scope, id string) store.Key { return sc.Partition("EXPORT-RUN").Key(id) }
