// Package azure reads the paths that clients of Azure OpenAI call: below /openai, and
// what is asked of a model below its deployment.
package azure

import (
	"net/url"
	"strings"
)

// Base is what all paths of Azure's clients stand below.
const Base = "/openai"

// Operations are what clients ask of a deployment.
var Operations = []string{
	"/chat/completions", "/completions", "/embeddings", "/images/generations", "/images/edits", "/audio/speech", "/audio/transcriptions", "/audio/translations", "/responses", "/realtime", "/batches",
}

// Below gives what a path, escaped and without a version before it, asks for, and the
// deployment that it names, escaped, if it does. Without one the query must have the
// version that Azure asks for: other hosts have paths that begin so, too.
func Below(path, rawQuery string) (below, deployment string, ok bool) {
	below, ok = strings.CutPrefix(path, Base)
	if !ok || len(below) < 2 || below[0] != '/' {
		return "", "", false
	}
	if rest, ok := strings.CutPrefix(below, "/v1"); ok && (rest == "/realtime" || strings.HasPrefix(rest, "/realtime/")) {
		return rest, "", true // sessions, whose clients write the version whatever their base
	}
	rest, ok := strings.CutPrefix(below, "/deployments/")
	if !ok {
		return below, "", names(rawQuery, "api-version")
	}
	for _, op := range Operations {
		// "/chat/completions" comes first, for it ends as another does.
		if deployment, ok = strings.CutSuffix(rest, op); ok && deployment != "" && deployment[0] != '/' {
			return op, deployment, true
		}
	}
	return "", "", false
}

// Query is that of the request without what only Azure asks for, and with the deployment
// of its path.
func Query(rawQuery, deployment string) string {
	var out []string
	for pair := range strings.SplitSeq(rawQuery, "&") {
		if pair != "" && !is(pair, "api-version") && (deployment == "" || !is(pair, "deployment")) {
			out = append(out, pair)
		}
	}
	if deployment != "" {
		if plain, err := url.PathUnescape(deployment); err == nil {
			deployment = url.QueryEscape(plain)
		}
		out = append(out, "deployment="+deployment)
	}
	return strings.Join(out, "&")
}

// Deployment is the one that a query names; "" for none.
func Deployment(rawQuery string) string {
	if !names(rawQuery, "deployment") {
		return ""
	}
	q, _ := url.ParseQuery(rawQuery) // what is badly escaped names none
	return q.Get("deployment")
}

func names(rawQuery, member string) bool {
	for pair := range strings.SplitSeq(rawQuery, "&") {
		if is(pair, member) {
			return true
		}
	}
	return false
}

func is(pair, member string) bool {
	name, _, _ := strings.Cut(pair, "=")
	return name == member
}
