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
	Fetched *media.Fetched // for the target, in place of addresses
	Ruled
}
