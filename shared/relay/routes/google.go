package routes

import (
	"net/http"
	"slices"
	"strings"
)

// googleMethods are the methods of a model in Google's API, as its SDKs call them.
var googleMethods = []string{
	"generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents",
	"predict", "predictLongRunning", "batchGenerateContent", "asyncBatchEmbedContent",
}

// googleVersion is the version of Google's API in the paths of the gateway and its catalog.
const googleVersion = "/v1beta"

// googleModel returns the path below BasePath of a call to a model by Google's SDKs 3 and later,
// which use v1 instead of v1beta: /models/{model}:generateContent becomes
// /v1beta/models/{model}:generateContent. The version may already be removed from below, since
// it equals the gateway's own. ok is false for other paths.
func googleModel(method, below string) (path string, ok bool) {
	below = strings.TrimPrefix(below, BasePath)
	rest, ok := strings.CutPrefix(below, "/models/")
	if !ok || method != http.MethodPost {
		return "", false
	}
	colon := strings.LastIndexByte(rest, ':')
	if colon < 1 || !slices.Contains(googleMethods, rest[colon+1:]) {
		return "", false
	}
	return googleVersion + below, true
}

// GoogleClient reports whether a request comes from a client of Google's API, which is told by
// its headers where its paths are those of OpenAI's: GET /v1/models and /v1/models/{model}.
func GoogleClient(h http.Header) bool {
	return h["Anthropic-Version"] == nil && (h["X-Goog-Api-Key"] != nil || h["X-Goog-Api-Client"] != nil)
}

// googleListed returns the path of a model that a Google client reads, with a name of several
// segments (@slug/model) as one.
func googleListed(req *http.Request, below string) (path string, ok bool) {
	below = strings.TrimPrefix(below, BasePath)
	rest, ok := strings.CutPrefix(below, "/models/")
	if !ok || req.Method != http.MethodGet || !strings.Contains(rest, "/") || !GoogleClient(req.Header) {
		return "", false
	}
	return "/models/" + strings.ReplaceAll(rest, "/", "%2F"), true
}
