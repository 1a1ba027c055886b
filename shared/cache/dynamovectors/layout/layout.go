// Package layout names the attributes and indexes of the table of vectors, for the code
// that makes the table and the code that uses it.
package layout

// Attributes of the table. The vector's attribute and its index are named by this prefix
// and their number of dimensions.
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
