// Package azure reads the paths that clients of Azure OpenAI call: those below /openai.
// Requests to a model are below its deployment.
package azure

import (
	"net/url"
	"strings"
)

// Base is the path that all paths of Azure's clients are below.
const Base = "/openai"

// Operations are what clients may ask a deployment for.
var Operations = []string{
	"/chat/completions", "/completions", "/embeddings", "/images/generations", "/images/edits", "/audio/speech", "/audio/transcriptions", "/audio/translations", "/responses", "/realtime", "/batches",
}

// SplitPath splits a path, which is escaped and has no version prefix, into the operation and
// the deployment (escaped), if any. Without a deployment, the query must have Azure's
// version, because other hosts have paths with the same prefix.
func SplitPath(path, rawQuery string) (below, deployment string, ok bool) {
	below, ok = strings.CutPrefix(path, Base)
	if !ok || len(below) < 2 || below[0] != '/' {
		return "", "", false
	}
	if rest, ok := strings.CutPrefix(below, "/v1"); ok && (rest == "/realtime" || strings.HasPrefix(rest, "/realtime/")) {
		return rest, "", true // sessions: their clients always write the version
	}
	rest, ok := strings.CutPrefix(below, "/deployments/")
	if !ok {
		return below, "", names(rawQuery, "api-version")
	}
	for _, op := range Operations {
		// "/chat/completions" comes first, because it ends like another operation.
		if deployment, ok = strings.CutSuffix(rest, op); ok && deployment != "" && deployment[0] != '/' {
			return op, deployment, true
		}
	}
	return "", "", false
}

// Query is the query of the request without the parameters that only Azure has, and with
// the deployment of its path.
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

// Deployment is the deployment that a query names; "" for none.
func Deployment(rawQuery string) string {
	if !names(rawQuery, "deployment") {
		return ""
	}
	q, _ := url.ParseQuery(rawQuery) // a query with bad escapes names none
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
