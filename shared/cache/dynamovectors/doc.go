// Package dynamovectors keeps the vectors of the semantic cache in a DynamoDB
// table with vector indexes, one for each number of dimensions. The tenant and the
// bucket together are the index's partition key, without which nothing can be
// searched: a tenant is never a filter. Items expire by the table's time to live,
// and what is over is left out until then. An index sees an item about a second
// after it was written.
//
// What the service asks for (Requirements and Troubleshooting of vector indexes in
// the developer guide, 2026-11): a table billed on demand; conditions by = alone,
// so that expiry is compared here; at most 100 results without pages; a search
// that comes before an index is ready is a ValidationException. There is no
// emulator: the tests stand on a strict fake, and a deployed table is the proof.
package dynamovectors
