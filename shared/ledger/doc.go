// Package ledger counts what is limited: request and token rates in fixed
// windows, and budgets of money, tokens or requests that are reserved before a
// call and settled after it.
//
// A Subject is what a limit counts: an API key, a workspace, a provider or an
// integration in a workspace, one bucket of a policy. Its limits travel with it
// (Rates, Budgets); its counters are rows of this package: one item in the rate
// table, one head in the spend table. A subject without limits costs no store
// operation.
//
// Rates (Admit) are one conditional update per limited subject. The window is a
// pure function of the unit and the time, its start is part of the row, and a
// row of an older window is rolled by the update that finds it.
//
// Callers of a subject divide its requests of a minute and of an hour where these are
// scarce; see fair.go.
//
// Budgets (Reserve, Raise, Settle) are one conditional update per budgeted
// subject and step. In every spend row and for every kind of budget
//
//	available = limit - spent - sum(open)
//
// holds after every single write, whatever is lost or repeated: all changes of
// available and spent are additions, and an open entry leaves the row in the
// same update that moves its money. There is no reset job: the time of the next
// reset is part of the row, and whoever touches the row later rolls it. The
// configuration of the limits (the plan) is part of the row too; whoever finds
// another one brings the row up to date.
//
// An entry that nobody settled within Due is settled at its bound by whoever
// touches the head next, and reported as unconfirmed; RepairAll walks all heads.
// The row keeps a trace of it; see trace.go.
// A head with more than SplitAbove open entries splits into shards, rows that
// hold a part of the budget; see shard.go.
//
// Rates fail open when the store is throttled (Hooks.FailedOpen), money fails
// closed. What never comes in here: prices, HTTP, resources and their loading.
package ledger
