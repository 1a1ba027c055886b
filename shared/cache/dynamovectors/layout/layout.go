// Package layout names the attributes and indexes of the table of vectors, for who
// makes it and who uses it.
package layout

// Attributes of the table; of the vectors, what stands before their number of
// dimensions, as in the names of the indexes.
const (
	PK      = "pk"
	SK      = "sk"
	Tenant  = "tenant"  // partition key of the indexes
	Expires = "expires" // Unix seconds
	Vector  = "v"
	Index   = "answers-"
)

// MaxDimensions bounds a vector, here as in the cache.
const MaxDimensions = 4096
