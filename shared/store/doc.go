// Package store is the gateway's one way to durable rows: tables of items under
// a partition key and a sort key, with conditional writes and transactions.
//
// Two implementations are below it, store/dynamo (DynamoDB) and store/sqlite (one file).
// Both pass testkit/storetest, and the second rejects what the first rejects. There is no
// index, scan, filter or SQL above this package: what must be found in another way has
// its own row, written in the same transaction.
//
// Keys are built from a Scope, so that a row of another tenant cannot be named.
// Credential and System are the two exceptions; see their comments.
package store
