package target

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/provider"
	"gateway/shared/relay/routes"
)

// ErrorDialect returns the dialect in which the client of a route without a dialect of its
// own reads errors: that of the SDK that requests the path. It is "" where that is OpenAI's.
func ErrorDialect(tg *Target) string {
	switch tg.Req.Route.BodyMode {
	case routes.Listing:
		switch {
		case tg.Req.Req.Header["Anthropic-Version"] != nil:
			return provider.AnthropicMessages
		case routes.GoogleClient(tg.Req.Req.Header):
			return provider.Gemini
		}
	case routes.Raw:
		return sdkDialect(tg.Choice.candidate, tg.Req.Req.Header, tg.Body.RawPath())
	}
	return ""
}

// ListsAsGoogle reports whether the response of a Listing route goes unchanged from Google to its
// client.
func (tg *Target) ListsAsGoogle() bool {
	return tg.Req.Route.BodyMode == routes.Listing && tg.Choice.Target.Provider.ID == "google" && routes.GoogleClient(tg.Req.Req.Header)
}

// GoogleListURL returns the address of a list, or of a model, that is read as Google's client asks.
func (tg *Target) GoogleListURL() (*url.URL, error) {
	from := tg.Req.Req.URL.Query()
	page := url.Values{}
	for _, name := range [...]string{"pageSize", "pageToken"} {
		if from.Has(name) {
			page.Set(name, from.Get(name))
		}
	}
	raw, err := tg.Choice.Target.PassthroughURL("/v1beta"+tg.Body.RawPath(), page.Encode())
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(raw)
}

// googleVersions are the versions with which only paths of Google's APIs begin.
var googleVersions = []string{"v1beta", "v1alpha", "v1beta1"}

// cohereObjects are those of Cohere's second version.
var cohereObjects = []string{"chat", "embed", "rerank", "embed-jobs", "datasets"}

// sdkDialect returns the dialect of the SDK that requests a path, that of p if it is known.
// Google, Cohere and Anthropic also serve paths of OpenAI's API.
func sdkDialect(p *provider.Provider, h http.Header, escapedPath string) string {
	segments := routes.Segments(escapedPath)
	anthropic := h["Anthropic-Version"] != nil
	switch {
	case slices.ContainsFunc(segments, func(s string) bool { return s == "openai" || s == "openapi" || s == "compatibility" }):
		return ""
	case anthropic:
		return provider.AnthropicMessages
	}
	rest := segments
	if len(rest) > 0 && rest[0] == "upload" {
		rest = rest[1:]
	}
	if len(rest) > 1 {
		switch {
		case slices.Contains(googleVersions, rest[0]):
			return provider.Gemini
		case rest[0] == "model":
			return provider.Converse
		case rest[0] == "v2" && slices.Contains(cohereObjects, rest[1]):
			return provider.Cohere
		}
	}
	if p == nil {
		return ""
	}
	switch p.Dialect {
	case provider.Gemini, provider.Cohere, provider.Converse:
		return p.Dialect
	case provider.AnthropicMessages:
		if !strings.Contains(escapedPath, "completions") {
			return p.Dialect
		}
	}
	return ""
}
