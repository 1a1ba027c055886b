// Package columns tells which columns of a segment's file other tools are offered, with
// their types in the catalogue of Glue. It is apart from segment for those that define
// tables and read no files.
package columns

// Column is one of a file.
type Column struct{ Name, Type string }

// Partitions of the files, by the places below Prefix where they stand.
const (
	Prefix = "segments/data/"
	Org    = "org" // of whom the files are; for an organisation's id with characters of its own as in an address
	Day    = "day" // of UTC, of the first hour of a file
	Layout = "yyyy/MM/dd"
	First  = "2001/01/01" // no record is older
)

// All are the columns. Names are never changed; new ones are added, which older files do
// not have. What the gateway alone can read is not among them.
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

// Own are the columns that nobody else is offered: the record as the gateway writes it,
// and where its sealed bodies are.
var Own = []string{"body_pack", "body_offset", "body_length", "event"}
