// Package columns lists the columns of a segment's file that are offered to other tools,
// with their types in Glue's catalog. It is separate from the package segment for
// programs that define tables and read no files.
package columns

// Column is a column of a file.
type Column struct{ Name, Type string }

// Partitions of the files, by their path below Prefix.
const (
	Prefix = "segments/data/"
	Org    = "org" // organization that owns the files; special characters in its id are percent-encoded
	Day    = "day" // UTC day of a file's first hour
	Layout = "yyyy/MM/dd"
	First  = "2001/01/01" // no record is older than this
)

// All lists the offered columns. Names never change; new columns may be added, which
// older files do not have. It omits columns that only the gateway can read.
var All = []Column{
	{"id", "string"}, {"start", "timestamp"}, {"organisation", "string"}, {"workspace", "string"}, {"workspace_slug", "string"},
	{"api_key", "string"}, {"api_key_type", "string"}, {"user", "string"}, {"end_user", "string"}, {"metadata", "map<string,string>"},
	{"trace_id", "string"}, {"span_id", "string"}, {"endpoint", "string"}, {"request_model", "string"}, {"model", "string"},
	{"provider", "string"}, {"provider_slug", "string"}, {"integration", "string"}, {"config", "string"}, {"prompt", "string"},
	{"mode", "string"}, {"option", "string"}, {"cache_status", "string"}, {"finish_reason", "string"}, {"error_code", "string"},
	{"status", "string"}, {"retries", "string"}, {"fallback", "string"}, {"stream", "boolean"}, {"priced", "boolean"}, {"estimated", "boolean"},
	{"cost", "bigint"}, {"cache_saved", "bigint"}, {"tokens_in", "bigint"}, {"tokens_out", "bigint"}, {"duration", "bigint"}, {"with_user", "bigint"},
	{"time_to_first_byte", "bigint"}, {"upstream_latency", "bigint"}, {"gateway_time", "bigint"}, {"request_bytes", "bigint"}, {"response_bytes", "bigint"},
	{"prompt_version", "string"}, {"experiment", "string"}, {"session", "string"}, {"agent", "string"}, {"parent_agent", "string"},
	{"parent_span_id", "string"}, {"gateway_cost", "bigint"},
}

// Standard lists the internal columns: the record as the gateway encodes it, and the location
// of its sealed bodies.
var Standard = []string{"body_pack", "body_offset", "body_length", "event"}
