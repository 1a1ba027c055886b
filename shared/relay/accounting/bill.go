package accounting

import (
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/relay/body"
	"gateway/shared/relay/target"
)

// Bill is what one request counts, holds and costs, target by target.
type Bill struct {
	Target   *target.Target
	Ledger   *ledger.Ledger
	Prices   *pricing.Book
	Reported Reported
	Purse    Purse
	Fetched  *body.FetchedMedia // media that were fetched for a target that takes no addresses
	// ReadRows reads the rows of the batch that the request creates, checks what they name, and
	// adds them up, unless the sum is nil; nil for other requests.
	ReadRows func(*BatchSum) error
	hidden   int64       // most input tokens, where the body refers to input that it does not contain
	rows     []BatchRows // of the batch that the request creates
	Ruled
}
