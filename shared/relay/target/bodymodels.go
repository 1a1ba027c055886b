package target

import (
	"slices"
	"strings"

	"gateway/shared/relay/routes"
)

// bodyModels are the ends of paths at which providers read the model from the body, in lower
// case.
var bodyModels = [][]string{
	{"chat", "completions"}, {"completions"}, {"fim", "completions"}, {"agents", "completions"}, {"chat"}, {"complete"}, {"generate"},
	{"responses"}, {"responses", "compact"}, {"responses", "input_tokens"}, {"conversations"}, {"interactions"}, {"decisions"},
	{"messages"}, {"messages", "count_tokens"}, {"messages", "batches"},
	{"embeddings"}, {"embed"}, {"multimodalembeddings"}, {"contextualizedembeddings"}, {"classify"}, {"tokenize"}, {"detokenize"},
	{"images", "generations"}, {"images", "edits"}, {"images", "variations"}, {"videos"},
	{"audio", "speech"}, {"audio", "transcriptions"}, {"audio", "translations"}, {"rerank"}, {"ocr"},
	{"moderations"}, {"chat", "moderations"}, {"classifications"}, {"chat", "classifications"},
	{"batches"}, {"batch", "jobs"}, {"embed-jobs"}, {"async-invoke"}, {"model-invocation-job"}, {"batchpredictionjobs"},
	{"fine_tuning", "jobs"}, {"tuningjobs"}, {"tunedmodels"}, {"cachedcontents"}, {"assistants"}, {"threads", "runs"}, {"evals"},
}

// Segments before these ends that name no model: alone, and with the next segment.
var (
	mounts     = []string{"api", "openai", "anthropic", "cohere", "inference", "compatibility", "compatible-mode", "serving-endpoints", "paas", "async", "beta", "ai"}
	mountPairs = []string{"projects", "locations", "accounts", "deployments", "engines"}
)

// readsBodyModel reports whether a provider is known to read the model of a request to the path
// from the outermost field of its body. Elsewhere the path may name another one, in a form that
// is not known, and the field may be a decoy.
func readsBodyModel(escapedPath string) bool {
	segments := routes.Segments(strings.ToLower(escapedPath))
	return slices.ContainsFunc(bodyModels, func(end []string) bool {
		n := len(segments) - len(end)
		return n >= 0 && slices.Equal(segments[n:], end) && isMount(segments[:n])
	})
}

func isMount(segments []string) bool {
	for len(segments) > 0 {
		switch first := segments[0]; {
		case isVersion(first), slices.Contains(mounts, first):
			segments = segments[1:]
		case len(segments) > 1 && (slices.Contains(mountPairs, first) || first == "endpoints" && segments[1] == "openapi"):
			segments = segments[2:]
		default:
			return false
		}
	}
	return true
}

// isVersion reports whether a segment is a version, such as v1 or v1beta.
func isVersion(s string) bool {
	rest, ok := strings.CutPrefix(s, "v")
	digits := strings.TrimLeft(rest, "0123456789")
	return ok && digits != rest && (digits == "" || strings.HasPrefix(digits, "alpha") || strings.HasPrefix(digits, "beta"))
}
