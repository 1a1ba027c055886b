package export

import (
	"encoding/json"

	"gateway/shared/usage/export/exportrow"
)

// Kind is the kind of the records of exports.
const Kind = exportrow.Kind

// Export is the stored definition of an export. Its progress is its Run.
type Export struct {
	Filters     json.RawMessage `json:"filters"` // as sent by the client
	Fields      []string        `json:"requested_data" min:"1"`
	Description string          `json:"description,omitempty" max:"1000"`
	Format      string          `json:"format,omitempty" enum:"jsonl,csv,parquet"`
	Compression string          `json:"compression,omitempty" enum:"none,gzip,snappy,zstd"` // default none; the last two for Parquet
}

// Gzip is the name of that compression.
const Gzip = "gzip"
