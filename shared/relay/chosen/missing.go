package chosen

import (
	"net/http"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/routes"
)

// MissingDialect returns the dialect in which the client of a passed-through request reads that
// an object is missing: that of the provider's own SDK. It is "" where that is OpenAI's, or
// where the fault is another one.
func MissingDialect(tg *Target, f *fault.Fault) string {
	if tg.Route.Shape != routes.Raw || f.Code != fault.NotFound || f.Source == fault.SourceProvider || tg.To.asked == nil {
		return ""
	}
	return sdkDialect(tg.To.asked, tg.Req.Header, tg.RawPath())
}

// sdkDialect returns the dialect of the SDK that requests a path of a provider. Google and
// Anthropic also serve paths of OpenAI's shape.
func sdkDialect(p *provider.Provider, h http.Header, escapedPath string) string {
	segments := routes.Segments(escapedPath)
	switch p.Dialect {
	case provider.Gemini, provider.Cohere, provider.Converse:
		if slices.Contains(segments, "openai") || slices.Contains(segments, "compatibility") {
			return ""
		}
		return p.Dialect
	case provider.AnthropicMessages:
		if h["Anthropic-Version"] == nil && slices.Contains(segments, "completions") {
			return ""
		}
		return p.Dialect
	}
	return ""
}
