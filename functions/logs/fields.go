package logs

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/pricing"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

// metrics of a log, in the order of the groups of the documentation: identity, prompt and
// config, outcome, model, cache, trace, request, metadata, timing. Times are in
// milliseconds, cost is in US cents. pre_processing_time is the time from arrival to the
// first call of a provider; gateway_processing_time is all time that was not spent waiting
// for providers.
type metrics struct {
	ID             string  `json:"id"`
	OrganisationID string  `json:"organisation_id"`
	WorkspaceID    string  `json:"workspace_id"`
	WorkspaceSlug  string  `json:"workspace_slug"`
	APIKeyID       *string `json:"api_key_id"`
	UserID         *string `json:"user_id"`
	VirtualKey     *string `json:"virtual_key"`

	PromptID      *string `json:"prompt_id"`
	PromptSlug    *string `json:"prompt_slug"`
	PromptVersion *int64  `json:"prompt_version"`
	ExperimentID  *string `json:"experiment_id"` // that chose the version
	ConfigID      *string `json:"config_id"`
	Config        *string `json:"config"`
	ConfigVersion *int64  `json:"config_version"`

	IsSuccess           bool    `json:"is_success"`
	ResponseStatusCode  int64   `json:"response_status_code"`
	ResponseTime        float64 `json:"response_time"`
	Endpoint            string  `json:"endpoint"`
	IsProxyCall         bool    `json:"is_proxy_call"`
	StreamMode          int64   `json:"stream_mode"`
	Mode                string  `json:"mode"`
	LastUsedOptionIndex int64   `json:"last_used_option_index"`
	RetrySuccessCount   int64   `json:"retry_success_count"`
	ClientGone          bool    `json:"client_gone"`
	FinishReason        *string `json:"finish_reason"`
	ErrorCode           *string `json:"error_code"`
	ErrorMessage        *string `json:"error_message"`

	AIOrg          *string     `json:"ai_org"`
	AIModel        *string     `json:"ai_model"`
	ReqUnits       int64       `json:"req_units"`
	ResUnits       int64       `json:"res_units"`
	TotalUnits     int64       `json:"total_units"`
	UnitsEstimated bool        `json:"units_estimated"`
	UnitsLimited   bool        `json:"units_limited" doc:"The provider reported more than a request can use. The units are limited to the maximum for this request."`
	Cost           float64     `json:"cost" doc:"In cost_unit."`
	GatewayCost    float64     `json:"gateway_cost" doc:"AWS cost of the gateway itself, in cost_unit; 0 if it is not counted per request."`
	GatewayCostUSD json.Number `json:"gateway_cost_usd" doc:"Exact value of gateway_cost in US dollars."`
	CostCurrency   string      `json:"cost_currency" doc:"The currency of all costs; cost, gateway_cost and cache_savings are in hundredths of it."`
	CostUnit       string      `json:"cost_unit" enum:"cents" doc:"The unit of cost, gateway_cost and cache_savings: US cents."`
	CostUSD        json.Number `json:"cost_usd" doc:"Exact value of cost in US dollars."`
	IsPriced       bool        `json:"is_priced"`
	PriceBook      *string     `json:"price_book" doc:"Version of the price list; null: it was not used."`
	Tariff         *string     `json:"tariff" doc:"Lines of the price list that determined the cost."`

	CacheStatus     string      `json:"cache_status"`
	CacheType       *string     `json:"cache_type"`
	CacheSavings    float64     `json:"cache_savings" doc:"Cost of the cached response, in cost_unit."`
	CacheSavingsUSD json.Number `json:"cache_savings_usd" doc:"Exact value of cache_savings in US dollars."`

	TraceID      *string `json:"trace_id"`
	SpanID       *string `json:"span_id"`
	SpanName     *string `json:"span_name"`
	ParentSpanID *string `json:"parent_span_id"`

	SessionID     *string `json:"session_id" doc:"Of a coding agent."`
	AgentID       *string `json:"agent_id"`
	ParentAgentID *string `json:"parent_agent_id"`

	MCPServerID  *string `json:"mcp_server_id" doc:"For a request to an MCP server, like the following fields."`
	MCPVirtual   *string `json:"mcp_virtual_server_id" doc:"The virtual server that the client called, which contains the server."`
	MCPMethod    *string `json:"mcp_method"`
	MCPName      *string `json:"mcp_name" doc:"The tool, prompt or resource."`
	MCPAuthType  *string `json:"mcp_auth_type" doc:"api_key or Bearer."`
	MCPScope     *string `json:"mcp_auth_scope" doc:"For a request to an MCP server or an agent: the scopes of the access token or of the API key that allowed it; null: none."`
	MCPDecision  *string `json:"mcp_decision" doc:"allowed, or the check that rejected it."`
	MCPRefreshed *bool   `json:"mcp_upstream_token_refreshed"`
	MCPErrorCode *int64  `json:"mcp_error_code" doc:"JSON-RPC error code in the response to the client."`
	MCPVersion   *string `json:"mcp_protocol_version" doc:"Protocol version of the client."`
	MCPFailed    *bool   `json:"mcp_tool_failed" doc:"The tool reported a failure."`
	Gateway      *string `json:"gateway_version" doc:"For a request to an MCP server or an agent: the deployment that served it."`

	RequestURL    string `json:"request_url"`
	RequestMethod string `json:"request_method"`
	RequestBytes  int64  `json:"request_bytes"`
	ResponseBytes int64  `json:"response_bytes"`

	MetadataKey   []string `json:"metadata.key"`
	MetadataValue []string `json:"metadata.value"`

	PreProcessingTime     *float64 `json:"pre_processing_time"`
	TimeToFirstByte       float64  `json:"time_to_first_byte"`
	GatewayProcessingTime float64  `json:"gateway_processing_time"`
	UpstreamResponseTime  float64  `json:"upstream_response_time"`

	OrganisationName string  `json:"organisation_name"`
	WorkspaceName    *string `json:"workspace_name" doc:"null: the workspace was deleted."`
	ConfigVersionID  *string `json:"config_version_id"`

	// From the request's headers, where a log is read with them.
	Source         *string `json:"source"`
	Runtime        *string `json:"runtime"`
	RuntimeVersion *string `json:"runtime_version"`
	SdkVersion     *string `json:"sdk_version"`

	// The documentation names these, and records do not hold them: null.
	PromptVersionID     *string `json:"prompt_version_id"`
	InternalTraceID     *string `json:"internal_trace_id"`
	RequestParsingTime  *string `json:"request_parsing_time"`
	CacheProcessingTime *string `json:"cache_processing_time"`
	ResponseParsingTime *string `json:"response_parsing_time"`
}

// fieldsOf are the metrics of a record. configVersion is the id of the version of
// the config that was in force, "" for none.
func fieldsOf(r *usage.Record, organisation, configVersion string) metrics {
	promptID, promptVersion := r.PromptVersion()
	m := metrics{
		ID:             r.ID,
		OrganisationID: r.Org,
		WorkspaceID:    r.Workspace,
		WorkspaceSlug:  r.WorkspaceSlug,
		APIKeyID:       admin.NullIfZero(r.KeyID),
		UserID:         admin.NullIfZero(r.UserID),
		VirtualKey:     admin.NullIfZero(r.ProviderSlug),

		PromptID:      admin.NullIfZero(promptID),
		PromptSlug:    admin.NullIfZero(r.PromptSlug),
		PromptVersion: admin.NullIfZero(promptVersion),
		ExperimentID:  admin.NullIfZero(r.Experiment()),
		ConfigID:      admin.NullIfZero(r.ConfigID),
		Config:        admin.NullIfZero(r.ConfigSlug),
		ConfigVersion: admin.NullIfZero(r.ConfigVersion),

		IsSuccess:           r.Success(),
		ResponseStatusCode:  int64(r.ClientStatus),
		ResponseTime:        milliseconds(r.Duration),
		Endpoint:            r.Endpoint,
		IsProxyCall:         r.Endpoint == "proxy",
		StreamMode:          int64(oneIf(r.Stream)),
		Mode:                or(r.Mode, "single"),
		LastUsedOptionIndex: int64(optionIndex(r.OptionIndex)),
		RetrySuccessCount:   int64(r.RetryCount),
		ClientGone:          r.ClientGone,
		FinishReason:        admin.NullIfZero(r.FinishReason),
		ErrorCode:           admin.NullIfZero(r.ErrorCode),
		ErrorMessage:        admin.NullIfZero(r.ErrorMessage),

		AIOrg:          admin.NullIfZero(r.Provider),
		AIModel:        admin.NullIfZero(r.AnsweringModel()),
		ReqUnits:       r.Usage.InputTokens(),
		ResUnits:       r.Usage.OutputTokens(),
		TotalUnits:     r.Usage.TotalTokens(),
		UnitsEstimated: r.Usage.Estimated,
		UnitsLimited:   r.Usage.Limited,
		Cost:           report.Cents(r.Cost),
		GatewayCost:    report.Cents(r.Running),
		GatewayCostUSD: r.Running.USD(),
		CostCurrency:   "USD",
		CostUnit:       pricing.CostUnit,
		CostUSD:        r.Cost.USD(),
		IsPriced:       r.Priced,
		PriceBook:      admin.NullIfZero(r.Book),
		Tariff:         admin.NullIfZero(r.Tariff),

		CacheStatus:     r.CacheStatus,
		CacheType:       cacheType(r.CacheStatus),
		CacheSavings:    report.Cents(r.CacheSaved),
		CacheSavingsUSD: r.CacheSaved.USD(),

		TraceID:      admin.NullIfZero(r.TraceID),
		SpanID:       admin.NullIfZero(r.SpanID),
		SpanName:     admin.NullIfZero(r.SpanName),
		ParentSpanID: admin.NullIfZero(r.ParentSpanID),

		SessionID:     admin.NullIfZero(r.Agent.Session),
		AgentID:       admin.NullIfZero(r.Agent.ID),
		ParentAgentID: admin.NullIfZero(r.Agent.Parent),

		RequestURL:    r.Path,
		RequestMethod: r.Method,
		RequestBytes:  r.RequestBytes,
		ResponseBytes: r.ResponseBytes,

		MetadataKey:   keys(r.Metadata),
		MetadataValue: values(r.Metadata),

		PreProcessingTime:     beforeCalls(r),
		TimeToFirstByte:       milliseconds(r.TimeToFirstByte),
		GatewayProcessingTime: milliseconds(r.GatewayTime),
		UpstreamResponseTime:  milliseconds(r.UpstreamLatency),

		OrganisationName: organisation, ConfigVersionID: admin.NullIfZero(configVersion),
	}
	if c := r.Call; c != nil {
		m.MCPServerID, m.MCPMethod, m.MCPName, m.MCPAuthType = admin.NullIfZero(c.Server), admin.NullIfZero(c.Method), admin.NullIfZero(c.Name), admin.NullIfZero(c.Auth)
		m.MCPVirtual = admin.NullIfZero(c.Virtual)
		m.MCPDecision, m.MCPRefreshed, m.MCPErrorCode = admin.NullIfZero(c.Decision), &c.Refreshed, admin.NullIfZero(c.Code)
		m.MCPVersion, m.MCPFailed = admin.NullIfZero(c.Version), &c.Failed
		m.Gateway, m.MCPScope = admin.NullIfZero(c.Gateway), admin.NullIfZero(c.Scope)
	}
	return m
}

// row is a log of the list.
type row struct {
	metrics
	Created admin.Instant `json:"created_at"`
	Object  string        `json:"object" enum:"log"`
}

// beforeCalls is the time to the first call to a provider; null: none was called.
func beforeCalls(r *usage.Record) *float64 {
	if len(r.Attempts) == 0 {
		return nil
	}
	return ms(r.Attempts[0].Start)
}

// values are those of a map in the order of keys.
func values(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for _, k := range keys(m) {
		out = append(out, m[k])
	}
	return out
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
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

// cacheType is the kind of a cache; null: none was in force.
func cacheType(status string) *string {
	switch {
	case status == "" || status == "DISABLED":
		return nil
	case strings.HasPrefix(status, "SEMANTIC"):
		return admin.NullIfZero("semantic")
	}
	return admin.NullIfZero("simple")
}

func keys(m map[string]string) []string {
	out := slices.AppendSeq(make([]string, 0, len(m)), maps.Keys(m))
	slices.Sort(out)
	return out
}
