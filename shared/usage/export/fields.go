package export

import (
	"encoding/json"
	"slices"

	"gateway/shared/pricing"
	"gateway/shared/usage"
	"gateway/shared/usage/message"
	"gateway/shared/usage/report"
)

// Formats of files.
const (
	JSONL   = "jsonl"   // one object per line
	CSV     = "csv"     // a header line, then values (RFC 4180)
	Parquet = "parquet" // one column per field
)

// line is a log with its opened bodies.
type line struct {
	*usage.Record
	bodies *usage.Bodies
}

// field is an exportable value of a log. value returns a value of the given kind.
type field struct {
	name, doc string
	kind      kind
	sealed    bool // it needs the bodies
	value     func(l *line) any
}

// kind is the type of a field's values.
type kind uint8

const (
	words   kind = iota // a string, or nil
	choice              // a string with few distinct values, or nil
	flag                // a bool
	whole               // an int64
	number              // a float64
	money               // a pricing.NanoDollars, shown in US dollars
	instant             // a time.Time
	object              // JSON, or nil
)

var fields = []field{
	{"id", "Of the log.", words, false, func(l *line) any { return l.ID }},
	{"trace_id", "Of the request's trace.", words, false, func(l *line) any { return text(l.TraceID) }},
	{"span_id", "Within the trace.", words, false, func(l *line) any { return text(l.SpanID) }},
	{"parent_span_id", "Of the span above.", words, false, func(l *line) any { return text(l.ParentSpanID) }},
	{"session_id", "Of a coding agent.", words, false, func(l *line) any { return text(l.Agent.Session) }},
	{"agent_id", "The coding agent.", words, false, func(l *line) any { return text(l.Agent.ID) }},
	{"parent_agent_id", "The coding agent above.", words, false, func(l *line) any { return text(l.Agent.Parent) }},
	{"created_at", "When the request came.", instant, false, func(l *line) any { return l.Start.UTC() }},
	{"workspace_id", "Where it was made.", choice, false, func(l *line) any { return l.Workspace }},
	{"api_key_id", "Who made it.", choice, false, func(l *line) any { return text(l.KeyID) }},
	{"user_id", "Whose key it was.", choice, false, func(l *line) any { return text(l.UserID) }},
	{"request", "What the client sent, as the log shows it.", object, true, func(l *line) any {
		return encoded(message.Request(l.bodies, l.Method, l.Path))
	}},
	{"response", "What the client got, as the log shows it.", object, true, func(l *line) any {
		return encoded(message.Of(l.bodies.ResponseHeaders, l.bodies.Response))
	}},
	{"is_success", "Whether the status was from 200 to 299, or 101 of a session.", flag, false, func(l *line) any { return l.Success() }},
	{"ai_org", "Type of the provider.", choice, false, func(l *line) any { return text(l.Provider) }},
	{"ai_model", "Model that answered, else the one that was asked for.", choice, false, func(l *line) any { return text(l.AnsweringModel()) }},
	{"virtual_key", "Saved provider.", choice, false, func(l *line) any { return text(l.ProviderSlug) }},
	{"req_units", "Tokens in.", whole, false, func(l *line) any { return l.Usage.InputTokens() }},
	{"res_units", "Tokens out.", whole, false, func(l *line) any { return l.Usage.OutputTokens() }},
	{"total_units", "Tokens in and out.", whole, false, func(l *line) any { return l.Usage.TotalTokens() }},
	{"request_url", "Path that was called.", choice, false, func(l *line) any { return l.Path }},
	{"cost", "In US cents.", number, false, func(l *line) any { return report.Cents(l.Cost) }},
	{"gateway_cost", "Of the gateway itself, in US cents; 0 where it is not counted for each request.", number, false, func(l *line) any { return report.Cents(l.Running) }},
	{"gateway_cost_usd", "Exact value of gateway_cost in US dollars.", money, false, func(l *line) any { return l.Running }},
	{"cost_currency", "The currency of all costs; cost and gateway_cost are in hundredths of it.", choice, false, func(*line) any { return "USD" }},
	{"cost_unit", "The unit of cost and gateway_cost.", choice, false, func(*line) any { return pricing.CostUnit }},
	{"cost_usd", "Exact value of cost in US dollars.", money, false, func(l *line) any { return l.Cost }},
	{"response_time", "Milliseconds to the last byte.", number, false, func(l *line) any { return float64(l.Duration.Microseconds()) / 1000 }},
	{"response_status_code", "That the client got.", whole, false, func(l *line) any { return int64(l.ClientStatus) }},
	{"error_code", "Of a failure.", choice, false, func(l *line) any { return text(l.ErrorCode) }},
	{"cache_status", "What the cache did.", choice, false, func(l *line) any { return text(l.CacheStatus) }},
	{"mode", "How targets were chosen.", choice, false, func(l *line) any {
		if l.Mode == "" {
			return "single"
		}
		return l.Mode
	}},
	{"config", "Slug of the config.", choice, false, func(l *line) any { return text(l.ConfigSlug) }},
	{"prompt_slug", "Of the prompt.", choice, false, func(l *line) any { return text(l.PromptSlug) }},
	{"metadata", "Of the request.", object, false, func(l *line) any {
		if l.Metadata == nil {
			return json.RawMessage("{}")
		}
		return encoded(l.Metadata)
	}},
}

// text returns nil for the empty string.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// encoded returns JSON of a value that always encodes.
func encoded(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return json.RawMessage(raw)
}

// Fields lists the names of exportable fields.
func Fields() []string {
	out := make([]string, len(fields))
	for i := range fields {
		out[i] = fields[i].name
	}
	return out
}

// Sealed reports whether one of the fields is part of the bodies.
func Sealed(names []string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.sealed && slices.Contains(names, f.name) })
}

// named returns the fields of an order, in its order.
func named(names []string) []*field {
	var out []*field
	for _, name := range names {
		if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
			out = append(out, &fields[i])
		}
	}
	return out
}
