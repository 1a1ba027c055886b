package accounting

import (
	"gateway/shared/relay/chosen"
)

// Meters read what an answer of a target used and charge it.
type Meters struct {
	Target *chosen.Target
	Bill   *Bill
}
