package export

import (
	"encoding/json"

	"gateway/shared/usage/export/exportrow"
)

// Kind is the kind of the records of exports.
const Kind = exportrow.Kind

// Export is what is stored of an export: what it is to write. How far it has come is
// its Run.
type Export struct {
	Filters     json.RawMessage `json:"filters"` // as they were sent
	Fields      []string        `json:"requested_data" min:"1"`
	Description string          `json:"description,omitempty" max:"1000"`
	Format      string          `json:"format,omitempty" enum:"jsonl,csv,parquet"`
	Compression string          `json:"compression,omitempty" enum:"none,gzip,snappy,zstd"` // default none; the last two for Parquet
}

// Gzip is the compression by that name.
const Gzip = "gzip"
