package bill

import (
	"io"

	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/inputbound"
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
	// ReadRows opens the rows of the batch that the request creates; nil for other requests.
	ReadRows func() (io.ReadCloser, error)
	hidden   int64             // most input tokens, where the body refers to input that it does not contain
	rows     []inputbound.Rows // of the batch that the request creates
	Ruled
}
