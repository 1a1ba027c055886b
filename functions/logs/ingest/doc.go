// Package ingest records requests made outside the gateway, as reported by clients. Usage is read
// from the reported response and priced like that of any request; it counts against no budget,
// because nothing was admitted.
package ingest
