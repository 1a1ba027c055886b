package fault

// The catalogue. Adding a code is adding a constant and a row.
const (
	InvalidRequest          Code = "invalid_request"
	InvalidConfig           Code = "invalid_config"
	InvalidContentType      Code = "invalid_content_type"
	MissingProvider         Code = "missing_provider"
	UnknownProvider         Code = "unknown_provider"
	UnsupportedOperation    Code = "unsupported_operation"
	UnsupportedResponse     Code = "unsupported_response_format"
	TranslationLoss         Code = "translation_loss"
	ThreadUnsupported       Code = "thread_unsupported_request"
	ThreadNotFound          Code = "thread_not_found"
	BlockedHost             Code = "blocked_host"
	ConfigOverrideRefused   Code = "config_override_refused"
	InlineConfigBlocked     Code = "inline_config_blocked"
	InlineProviderBlocked   Code = "inline_provider_blocked"
	InlineHostBlocked       Code = "inline_custom_host_blocked"
	InlineURLBlocked        Code = "inline_provider_url_blocked"
	InlineForwardBlocked    Code = "inline_forward_headers_blocked"
	Unauthorized            Code = "invalid_api_key"
	KeyExpired              Code = "api_key_expired"
	KeyPaused               Code = "api_key_paused"
	SubscriptionExhausted   Code = "subscription_exhausted"
	NotAllowed              Code = "not_allowed"
	SignInAgain             Code = "sign_in_again"
	InsufficientScope       Code = "insufficient_scope"
	ModelNotAllowed         Code = "model_not_allowed"
	NotFound                Code = "not_found"
	ReferenceNotFound       Code = "reference_not_found"
	RouteNotFound           Code = "route_not_found"
	MethodNotAllowed        Code = "method_not_allowed"
	RequestTimeout          Code = "request_timeout"
	Conflict                Code = "conflict"
	QuotaReached            Code = "quota_reached"
	BudgetExhausted         Code = "budget_exhausted"
	UnpricedModel           Code = "unpriced_model"
	UnboundedRequest        Code = "unbounded_request"
	BodyTooLarge            Code = "body_too_large"
	RateLimited             Code = "rate_limit_exceeded"
	GuardrailDenied         Code = "guardrail_denied"
	GuardrailUnread         Code = "guardrail_unread"
	InternalError           Code = "internal_error"
	InvalidProviderResponse Code = "invalid_provider_response"
	ProviderUnreachable     Code = "provider_unreachable"
	ProviderError           Code = "provider_error"
	ServiceUnavailable      Code = "service_unavailable"
)

type row struct {
	status int
	typ    string // OpenAI-style error.type
	admin  string // administration errorCode
}

var catalogue = map[Code]row{
	InvalidRequest:          {400, "invalid_request_error", "AB01"},
	InvalidConfig:           {400, "invalid_request_error", "AB01"},
	InvalidContentType:      {400, "invalid_request_error", "AB01"},
	MissingProvider:         {400, "invalid_request_error", "AB01"},
	UnknownProvider:         {400, "invalid_request_error", "AB01"},
	UnsupportedOperation:    {400, "invalid_request_error", "AB01"},
	UnsupportedResponse:     {400, "invalid_request_error", "AB01"},
	TranslationLoss:         {400, "invalid_request_error", "AB01"},
	ThreadUnsupported:       {400, "invalid_request_error", "AB01"},
	ThreadNotFound:          {404, "not_found_error", "AB08"},
	BlockedHost:             {400, "invalid_request_error", "AB01"},
	ConfigOverrideRefused:   {400, "invalid_request_error", "AB01"},
	InlineConfigBlocked:     {400, "invalid_request_error", "AB01"},
	InlineProviderBlocked:   {400, "invalid_request_error", "AB01"},
	InlineHostBlocked:       {400, "invalid_request_error", "AB01"},
	InlineURLBlocked:        {400, "invalid_request_error", "AB01"},
	InlineForwardBlocked:    {400, "invalid_request_error", "AB01"},
	Unauthorized:            {401, "authentication_error", "AB05"},
	KeyExpired:              {401, "authentication_error", "AB05"},
	KeyPaused:               {401, "authentication_error", "AB05"},
	SubscriptionExhausted:   {402, "insufficient_quota", "AB09"},
	NotAllowed:              {403, "permission_error", "AB03"},
	SignInAgain:             {403, "permission_error", "AB03"},
	InsufficientScope:       {403, "permission_error", "AB03"},
	ModelNotAllowed:         {403, "permission_error", "AB03"},
	NotFound:                {404, "not_found_error", "AB08"},
	ReferenceNotFound:       {404, "not_found_error", "AB02"},
	RouteNotFound:           {404, "not_found_error", "AB08"},
	MethodNotAllowed:        {405, "invalid_request_error", "AB01"},
	RequestTimeout:          {408, "timeout_error", "AB04"},
	Conflict:                {409, "conflict_error", "AB07"},
	QuotaReached:            {409, "conflict_error", "AB07"},
	BudgetExhausted:         {412, "insufficient_quota", "AB09"},
	UnpricedModel:           {412, "insufficient_quota", "AB09"},
	UnboundedRequest:        {412, "insufficient_quota", "AB09"},
	BodyTooLarge:            {413, "invalid_request_error", "AB01"},
	RateLimited:             {429, "rate_limit_error", "AB06"},
	GuardrailDenied:         {446, "hooks_failed", "AB03"},
	GuardrailUnread:         {403, "permission_error", "AB03"},
	InternalError:           {500, "api_error", "AB04"},
	InvalidProviderResponse: {502, "api_error", "AB04"},
	ProviderUnreachable:     {503, "api_error", "AB04"},
	ProviderError:           {502, "api_error", "AB04"},
	ServiceUnavailable:      {503, "api_error", "AB04"},
}

// Known reports whether a code is in the catalog; providers have other codes.
func Known(c Code) bool {
	_, ok := catalogue[c]
	return ok
}

func entry(c Code) row {
	if r, ok := catalogue[c]; ok {
		return r
	}
	return catalogue[InternalError]
}
