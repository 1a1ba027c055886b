package scan

import (
	"context"
	"encoding/json"
	"strings"

	"gateway/shared/guard/judge"
	"gateway/shared/guard/scan/leak"
)

// leaks judges how much of the request's system prompt the response reveals.
func leaks(p map[string]json.RawMessage) judge.Func {
	o, least, row := optionsOf(p), judge.Get(p, "threshold", 0.3), judge.Get(p, "minWords", leak.Least)
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		share, longest := leak.Share(system(s.Request), s.Text())
		return o.verdict(share > 0 && share >= least || longest >= row, map[string]any{"share": share, "words": longest, "threshold": least})
	}
}

// system returns the system prompt of a request: in messages, beside them, or as instructions.
func system(request json.RawMessage) string {
	var in struct {
		System       json.RawMessage `json:"system"`
		Instructions json.RawMessage `json:"instructions"`
		Messages     []turn          `json:"messages"`
		Input        json.RawMessage `json:"input"`
	}
	if len(request) == 0 || json.Unmarshal(request, &in) != nil {
		return ""
	}
	parts := []string{content(in.System), content(in.Instructions)}
	var items []turn
	_ = json.Unmarshal(in.Input, &items) // a string has no items
	for _, m := range append(in.Messages, items...) {
		if m.Role == "system" || m.Role == "developer" {
			parts = append(parts, content(m.Content))
		}
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}

type turn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// content returns a text, or the texts of its parts.
func content(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text + "\n")
	}
	return b.String()
}
