package bill

import (
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/media"
	"gateway/shared/relay/purse"
)

// Bill is what one request counts, holds and costs, target by target.
type Bill struct {
	*chosen.Target
	Ledger  *ledger.Ledger
	Book    *pricing.Book
	Heard   Heard
	Purse   purse.Purse
	Fetched *media.Fetched // media that were fetched for a target that takes no addresses
	Ruled
}
