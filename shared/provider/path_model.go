package provider

import (
	"net/url"
	"strings"
)

// PathModel is the model that the path of a pass-through request names, for providers that
// take it there and not in the body; "" if it names none. escapedPath is as PassthroughURL
// takes it. If a path can be read in several ways, every reading that the provider might
// use is considered, so that no spelling hides a model.
func (p *Provider) PathModel(escapedPath string) string {
	switch p.ID {
	case "bedrock":
		return after(segments(escapedPath), 0, "model")
	case "google", "palm", "vertex-ai":
		model := googleModel(plainSegments(escapedPath))
		if strings.HasSuffix(model, countingModel) && p.CountsTokens(escapedPath) {
			return "" // the model in the body counts
		}
		return model
	case "azure-openai", "azure-ai":
		return afterAny(segments(escapedPath), "deployments")
	case "predibase":
		return afterAny(segments(escapedPath), "llms")
	case "workers-ai":
		return workersModel(plainSegments(escapedPath))
	case "ai21":
		if s := segments(escapedPath); len(s) > 1 && s[len(s)-1] == "complete" {
			return s[len(s)-2]
		}
	case "bytez":
		if s := plainSegments(escapedPath); len(s) > 2 && s[0] == "models" && s[1] == "v2" {
			return strings.Join(s[2:], "/")
		}
	}
	return ""
}

// countingModel takes the place of the model where Vertex counts tokens of Anthropic's
// models.
const countingModel = "anthropic.count-tokens"

// CountsTokens reports whether a pass-through path of the provider only counts the tokens
// of its input, which is free. A path that can be read in several ways does not.
func (p *Provider) CountsTokens(escapedPath string) bool {
	if strings.ContainsAny(escapedPath, "%;\\") || strings.Contains(escapedPath, "/.") || strings.Contains(escapedPath, "//") {
		// A model's name may be escaped.
		plain, err := url.PathUnescape(escapedPath)
		if err != nil || p.ID != "bedrock" || strings.ContainsAny(plain, "%;\\?#") || strings.Contains(plain, "/.") || strings.Contains(plain, "//") {
			return false
		}
	}
	s := strings.Split(escapedPath, "/")
	last := s[len(s)-1]
	switch p.ID {
	case "google", "vertex-ai":
		name, method, _ := strings.Cut(last, ":")
		return len(s) > 2 && s[len(s)-2] == "models" && (method == "countTokens" || method == "computeTokens" || name == "count-tokens" && method == "rawPredict")
	case "bedrock":
		return len(s) == 4 && s[1] == "model" && last == "count-tokens"
	case "anthropic":
		return len(s) > 2 && s[len(s)-2] == "messages" && last == "count_tokens"
	}
	return false
}

// after is the segment after name, which is at index i; "" when it does not match.
func after(s []string, i int, name string) string {
	if len(s) < i+2 || s[i] != name {
		return ""
	}
	return s[i+1]
}

// afterAny returns the segment after the last name that has further segments after that
// one.
func afterAny(s []string, name string) string {
	for i := len(s) - 3; i >= 0; i-- {
		if s[i] == name {
			return s[i+1]
		}
	}
	return ""
}

// googleModel reads .../models/{model}:{method}, with or without a publisher, and
// .../endpoints/{id}:{method}. A model of a publisher other than Google has the publisher's
// name in front, as the gateway names such models.
func googleModel(s []string) string {
	for i := len(s) - 2; i >= 0; i-- {
		name, method, called := strings.Cut(s[i+1], ":")
		switch s[i] {
		case "models", "tunedModels":
			if !called || method == "" {
				continue
			}
			if s[i] == "tunedModels" {
				return "tunedModels/" + name
			}
			if i >= 2 && s[i-2] == "publishers" && s[i-1] != "google" {
				return s[i-1] + "." + name
			}
			return name
		case "endpoints":
			if name != "openapi" && (called || i+2 < len(s)) {
				return "endpoints." + name
			}
		}
	}
	return ""
}

// workersModel reads @cf/{maker}/{model} at the end of a path.
func workersModel(s []string) string {
	for i, name := range s {
		if name == "@cf" || name == "@hf" {
			return strings.Join(s[i:], "/")
		}
	}
	return ""
}

// segments are the segments of a path, decoded, without empty and dot segments. A segment
// with bad escapes stays as it is: no model has such a name.
func segments(escapedPath string) []string {
	out := make([]string, 0, 8)
	for piece := range strings.SplitSeq(escapedPath, "/") {
		if name, err := url.PathUnescape(piece); err == nil {
			piece = name
		}
		out = appendSegment(out, piece)
	}
	return out
}

// plainSegments are those of a path in which escaped slashes count as slashes.
func plainSegments(escapedPath string) []string {
	out := make([]string, 0, 8)
	for _, name := range segments(escapedPath) {
		for piece := range strings.SplitSeq(name, "/") {
			out = appendSegment(out, piece)
		}
	}
	return out
}

func appendSegment(out []string, piece string) []string {
	switch piece {
	case "", ".":
		return out
	case "..":
		return out[:max(len(out)-1, 0)]
	}
	return append(out, piece)
}
