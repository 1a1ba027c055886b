// Package ledger enforces limits: request and token rates in fixed windows, and budgets
// of money, tokens or requests that are reserved before a call and settled after it.
//
// A Subject is the owner of a limit: an API key, a workspace, a provider or an
// integration in a workspace, one bucket of a policy. It contains its limits (Rates,
// Budgets); its counters are rows of this package: one item in the rate table, one head
// in the spend table. A subject without limits costs no store operation.
//
// Rates (Admit) are one conditional update per limited subject. The window is a pure
// function of the unit and the time, its start is part of the row, and the next update of
// a row with an older window rolls it.
//
// Callers of a subject share its requests of a minute and of an hour when these are
// scarce; see fair.go.
//
// Budgets (Reserve, Raise, Settle) are one conditional update per budgeted subject and
// step. In every spend row and for every kind of budget
//
//	available = limit - spent - sum(open)
//
// holds after every single write, whatever is lost or repeated: all changes of available
// and spent are additions, and the update that moves an open entry's money removes the
// entry. There is no reset job: the time of the next reset is part of the row, and the
// next update after it rolls the row. The configuration of the limits (the plan) is part
// of the row too; an update that finds another one migrates the row.
//
// An entry that is not settled within Due is settled at its bound by the next request
// that updates the head, and reported as unconfirmed; RepairAll visits all heads. The row
// stores a trace of it; see trace.go. A head with more than SplitAbove open entries
// splits into shards, rows that hold a part of the budget; see shard.go.
//
// Rates fail open when the store is throttled (Hooks.FailedOpen), money fails closed.
// This package must not contain prices, HTTP, or resources and their loading.
package ledger
