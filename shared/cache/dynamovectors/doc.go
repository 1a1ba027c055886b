// Package dynamovectors keeps the vectors of the semantic cache in a DynamoDB table with
// vector indexes, one for each number of dimensions. The tenant and the bucket together
// are the index's partition key, which every search must give: a tenant is never a
// filter. Items expire by the table's time to live; until then expired ones are omitted.
// An index sees an item about a second after it was written. after it was written. What
// the service demands (Requirements and Troubleshooting of vector indexes in the
// developer guide, 2026-11): a table billed on demand; conditions by = alone, so expiry
// is compared here; at most 100 results without pages; a search before an index is ready
// is a ValidationException. There is no emulator: the tests use a strict fake, and only a
// deployed table is proof.
package dynamovectors
