package main

import ()

// broken are successes that are none, as the mock makes them, and what of them
// is paid for.
var broken = []struct {
	directives string
	paid       bool
}{
	{"html&status=200", false}, {"empty", false}, {"garbage", false}, {"cut=after:0", false}, {"cut=after:2", false},
	{"wrong-length", true}, {"gzip&wrong-length", true},
}

// answering are the routes of the mock that answer whole, with a model of each.
var answering = []struct{ provider, path, model, body string }{
	{"@mock", "/chat/completions", "gpt-4o-mini", chatBody("m", "Hello", "")},
	{"@mock", "/completions", "gpt-3.5-turbo-instruct", `{"model":"m","prompt":"Hello"}`},
	{"@mock", "/responses", "gpt-4o-mini", `{"model":"m","input":"Hello"}`},
	{"@mock", "/messages", "gpt-4o-mini", chatBody("m", "Hello", `,"max_tokens":50`)},
	{"@mock", "/embeddings", "text-embedding-3-small", `{"model":"m","input":"Hello"}`},
	{"@mock-anthropic", "/messages", "claude-sonnet-4-5", chatBody("m", "Hello", `,"max_tokens":50`)},
	{"@mock-anthropic", "/chat/completions", "claude-sonnet-4-5", chatBody("m", "Hello", "")},
	{"@mock-anthropic", "/responses", "claude-sonnet-4-5", `{"model":"m","input":"Hello"}`},
}
