package logs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

// metric is one member of the metrics of a log.
type metric struct {
	name string
	kind string // JSON type; with ? it may be null
	of   func(r *usage.Record) any
}

// metrics of a log, in the order of the groups of the documentation: identity,
// prompt and config, outcome, model, cache, trace, request, metadata, timing.
// Times are in milliseconds, cost is in US cents. pre_processing_time is from
// arrival to the first call to a provider, gateway_processing_time all time but
// that waited for providers.
var metrics = []metric{
	{"id", "string", func(r *usage.Record) any { return r.ID }},
	{"organisation_id", "string", func(r *usage.Record) any { return r.Org }},
	{"workspace_id", "string", func(r *usage.Record) any { return r.Workspace }},
	{"workspace_slug", "string", func(r *usage.Record) any { return r.WorkspaceSlug }},
	{"api_key_id", "string?", func(r *usage.Record) any { return orNull(r.KeyID) }},
	{"user_id", "string?", func(r *usage.Record) any { return orNull(r.UserID) }},
	{"virtual_key", "string?", func(r *usage.Record) any { return orNull(r.ProviderSlug) }},

	{"prompt_id", "string?", func(r *usage.Record) any { return orNull(r.PromptID) }},
	{"prompt_slug", "string?", func(r *usage.Record) any { return orNull(r.PromptSlug) }},
	{"config_id", "string?", func(r *usage.Record) any { return orNull(r.ConfigID) }},
	{"config", "string?", func(r *usage.Record) any { return orNull(r.ConfigSlug) }},
	{"config_version", "integer?", func(r *usage.Record) any {
		if r.ConfigVersion == 0 {
			return nil
		}
		return r.ConfigVersion
	}},

	{"is_success", "boolean", func(r *usage.Record) any { return r.Success() }},
	{"response_status_code", "integer", func(r *usage.Record) any { return r.ClientStatus }},
	{"response_time", "number", func(r *usage.Record) any { return milliseconds(r.Duration) }},
	{"endpoint", "string", func(r *usage.Record) any { return r.Endpoint }},
	{"is_proxy_call", "boolean", func(r *usage.Record) any { return r.Endpoint == "proxy" }},
	{"stream_mode", "integer", func(r *usage.Record) any { return oneIf(r.Stream) }},
	{"mode", "string", func(r *usage.Record) any {
		if r.Mode == "" {
			return "single"
		}
		return r.Mode
	}},
	{"last_used_option_index", "integer", func(r *usage.Record) any { return optionIndex(r.OptionIndex) }},
	{"retry_success_count", "integer", func(r *usage.Record) any { return r.RetryCount }},
	{"client_gone", "boolean", func(r *usage.Record) any { return r.ClientGone }},
	{"finish_reason", "string?", func(r *usage.Record) any { return orNull(r.FinishReason) }},
	{"error_code", "string?", func(r *usage.Record) any { return orNull(r.ErrorCode) }},
	{"error_message", "string?", func(r *usage.Record) any { return orNull(r.ErrorMessage) }},

	{"ai_org", "string?", func(r *usage.Record) any { return orNull(r.Provider) }},
	{"ai_model", "string?", func(r *usage.Record) any { return orNull(model(r)) }},
	{"req_units", "integer", func(r *usage.Record) any { return r.Usage.InputTokens() }},
	{"res_units", "integer", func(r *usage.Record) any { return r.Usage.OutputTokens() }},
	{"total_units", "integer", func(r *usage.Record) any { return r.Usage.TotalTokens() }},
	{"units_estimated", "boolean", func(r *usage.Record) any { return r.Usage.Estimated }},
	{"cost", "number", func(r *usage.Record) any { return report.Cents(r.Cost) }},
	{"cost_currency", "string", func(*usage.Record) any { return "USD" }},
	{"is_priced", "boolean", func(r *usage.Record) any { return r.Priced }},

	{"cache_status", "string", func(r *usage.Record) any { return r.CacheStatus }},
	{"cache_type", "string?", func(r *usage.Record) any { return cacheType(r.CacheStatus) }},
	{"cache_savings", "number", func(r *usage.Record) any { return report.Cents(r.CacheSaved) }},

	{"trace_id", "string?", func(r *usage.Record) any { return orNull(r.TraceID) }},
	{"span_id", "string?", func(r *usage.Record) any { return orNull(r.SpanID) }},
	{"span_name", "string?", func(r *usage.Record) any { return orNull(r.SpanName) }},
	{"parent_span_id", "string?", func(r *usage.Record) any { return orNull(r.ParentSpanID) }},

	{"request_url", "string", func(r *usage.Record) any { return r.Path }},
	{"request_method", "string", func(r *usage.Record) any { return r.Method }},
	{"request_bytes", "integer", func(r *usage.Record) any { return r.RequestBytes }},
	{"response_bytes", "integer", func(r *usage.Record) any { return r.ResponseBytes }},

	{"metadata.key", "array", func(r *usage.Record) any { return keys(r.Metadata) }},
	{"metadata.value", "array", func(r *usage.Record) any {
		values := make([]string, 0, len(r.Metadata))
		for _, k := range keys(r.Metadata) {
			values = append(values, r.Metadata[k])
		}
		return values
	}},

	{"pre_processing_time", "number?", func(r *usage.Record) any {
		if len(r.Attempts) == 0 {
			return nil
		}
		return milliseconds(r.Attempts[0].Start)
	}},
	{"time_to_first_byte", "number", func(r *usage.Record) any { return milliseconds(r.TimeToFirstByte) }},
	{"gateway_processing_time", "number", func(r *usage.Record) any { return milliseconds(r.GatewayTime) }},
	{"upstream_response_time", "number", func(r *usage.Record) any { return milliseconds(r.UpstreamLatency) }},
}

// unrecorded are members that the documentation names and records do not hold;
// they are null. The log itself finds the first four in the request's headers.
var unrecorded = []string{
	"source", "runtime", "runtime_version", "sdk_version", "prompt_version_id", "internal_trace_id",
	"request_parsing_time", "cache_processing_time", "response_parsing_time",
}

// row is a log of the list: its metrics. configVersion is the id of the version
// of the config that was in force, "" for none.
func row(r *usage.Record, organisation, configVersion string) map[string]any {
	out := make(map[string]any, len(metrics)+len(unrecorded)+4)
	out["config_version_id"] = orNull(configVersion)
	for i := range metrics {
		out[metrics[i].name] = metrics[i].of(r)
	}
	for _, name := range unrecorded {
		out[name] = nil
	}
	out["organisation_name"], out["created_at"], out["object"] = organisation, admin.FormatTime(r.Start), "log"
	return out
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// model is the model that answered, else the one that was asked for.
func model(r *usage.Record) string {
	if r.Model == "" {
		return r.RequestModel
	}
	return r.Model
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// optionIndex is the last index of an option's path: 1 of config.targets[1].
func optionIndex(path string) int {
	_, last, _ := strings.Cut(path[strings.LastIndexByte(path, '.')+1:], "[")
	n, err := strconv.Atoi(strings.TrimSuffix(last, "]"))
	if err != nil {
		return 0
	}
	return n
}

func cacheType(status string) any {
	switch {
	case status == "" || status == "DISABLED":
		return nil
	case strings.HasPrefix(status, "SEMANTIC"):
		return "semantic"
	}
	return "simple"
}

func keys(m map[string]string) []string {
	out := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(out)
	return out
}
