package metered

import (
	"gateway/shared/relay/bill"
	"gateway/shared/relay/chosen"
)

// Meters read what an answer of a target used and charge it.
type Meters struct {
	*chosen.Target
	*bill.Bill
}
