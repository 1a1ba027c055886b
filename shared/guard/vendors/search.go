package vendors

import (
	"encoding/json"
	"fmt"
	"strings"

	"gateway/shared/guard/content"
	"gateway/shared/wire"
)

// searchWires put search results into the request: after its system prompt, or before its
// prompt. They always pass.
var searchWires = []row{
	{id: "exa.online", name: "Exa", url: "https://api.exa.ai/search", header: apiKeyHeader, only: searched,
		body:   `{"query":"$query","numResults":"$.numResults","useAutoprompt":true,"contents":{"text":true},"includeDomains":"$.includeDomains","excludeDomains":"$.excludeDomains"}`,
		values: values{"query": searchQuery}, judge: found},
	{id: "tavily.online", name: "Tavily", url: "https://api.tavily.com/search", header: bearer, only: searched,
		body: `{"query":"$query","max_results":"$.maxResults","search_depth":"$.searchDepth","chunks_per_source":"$.chunksPerSource","topic":"$.topic","time_range":"$.timeRange","start_date":"$.startDate","end_date":"$.endDate",` +
			`"include_answer":"$.includeAnswer","include_raw_content":"$.includeRawContent","include_images":"$.includeImages","include_domains":"$.includeDomains","exclude_domains":"$.excludeDomains","country":"$.country",` +
			`"auto_parameters":"$.autoParameters","exact_match":"$.exactMatch","include_usage":"$.includeUsage","safe_search":"$.safeSearch"}`,
		values: values{"query": searchQuery}, judge: found},
}

// searched are the request types that a search extends.
var searched = []string{"chatComplete", "complete"}

func searchQuery(a *ask) any { return strings.TrimSpace(strings.ReplaceAll(a.text, "\n", " ")) }

// source is a page that a search found.
type source struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// found writes the results into the request.
func found(a *ask, answered answer) {
	list := answered.list("results")
	var b strings.Builder
	if s := optional[string](answered, "answer"); s != "" {
		b.WriteString(s + "\n")
	}
	for i, one := range list {
		src := source{optional[string](one, "title"), one.text("url")}
		a.run.sources = append(a.run.sources, src)
		fmt.Fprintf(&b, "[%d] %q\nURL: %s\n", i+1, src.Title, src.URL)
		if date := first(one, "publishedDate", "published_date"); date != "finding" {
			b.WriteString("Date: " + date + "\n")
		}
		if text := first(one, "text", "raw_content", "content"); text != "finding" {
			b.WriteString(text + "\n")
		}
	}
	if b.Len() == 0 || *answered.bad {
		return
	}
	prefix, suffix := "\n<web_search_context>", "\n</web_search_context>"
	if s, ok := a.run.params["prefix"].(string); ok {
		prefix = s
	}
	if s, ok := a.run.params["suffix"].(string); ok {
		suffix = s
	}
	a.run.body = a.with(prefix + "\n" + b.String() + suffix)
}

// with returns the request with a text added.
func (a *ask) with(text string) json.RawMessage {
	body := a.run.s.Request
	if a.run.s.Kind == "complete" {
		f := content.InRequest(a.run.s.Kind, body, content.LastMessage)
		return changed(&f, body, func(was string) string { return text + was })
	}
	if f := content.InRequest(a.run.s.Kind, body, content.Prompt); len(f.Texts) > 0 {
		return changed(&f, body, func(was string) string { return was + text })
	}
	keys := wire.NewKeySet("messages")
	var w wire.Walk
	if keys.Walk(body, &w) != nil {
		return nil
	}
	list := w.Spans[0].Of(body)
	if wire.KindOf(list) != wire.KindArray {
		return nil
	}
	raw := append(wire.AppendJSONString([]byte(`[{"role":"system","content":`), text), '}')
	if rest := strings.TrimSpace(string(list[1:])); rest != "]" {
		raw = append(raw, ',')
	}
	return wire.Splice(nil, body, keys.SetKey(&w, 0, append(raw, list[1:]...)))
}

// changed returns a body with its first text changed.
func changed(f *content.Found, body []byte, change func(string) string) json.RawMessage {
	for i, t := range f.Texts {
		if t != "" {
			now := make([]*string, len(f.Texts))
			t = change(t)
			now[i] = &t
			return f.With(body, now)
		}
	}
	return nil
}
