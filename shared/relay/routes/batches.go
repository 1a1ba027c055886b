package routes

import (
	"net/http"
	"slices"
	"strings"
)

// batchPlaces are the last segments of paths to which providers take batches, by the segment
// before them, which is "" where that does not matter.
var batchPlaces = [...][2]string{
	{"", "batches"},      // OpenAI and hosts of its shape, Anthropic
	{"batch", "jobs"},    // Mistral
	{"", "embed-jobs"},   // Cohere
	{"", "async-invoke"}, // Bedrock
	{"", "model-invocation-job"},
	{"", "batchpredictionjobs"}, // Vertex
	{"", "batchinferencejobs"},  // Fireworks
}

// StartsBatch reports whether a passed-through request makes a provider process many requests,
// in any encoding of its path: a batch, or rows for an existing one.
func StartsBatch(method, escapedPath string) bool {
	if method != http.MethodPost {
		return false
	}
	segments := Segments(escapedPath)
	for i, s := range segments {
		segments[i] = strings.ToLower(s)
	}
	n := len(segments)
	if n == 0 {
		return false
	}
	last := segments[n-1]
	if strings.HasSuffix(last, ":batchgeneratecontent") || strings.HasSuffix(last, ":asyncbatchembedcontent") {
		return true // Gemini
	}
	for _, place := range batchPlaces {
		if last == place[1] && (place[0] == "" || n > 1 && segments[n-2] == place[0]) {
			return true
		}
	}
	// xAI takes rows below a batch.
	at := slices.Index(segments, "batches")
	return at >= 0 && n > at+2 && last != "cancel"
}
