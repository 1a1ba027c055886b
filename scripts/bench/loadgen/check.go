package loadgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// check checks every answer cheaply, and decodes one in 64.
func (w *worker) check(k int64) error {
	full := k%64 == 0
	switch w.spec.Kind {
	case "chat":
		if !bytes.Contains(w.body, []byte(Marker)) || !bytes.Contains(w.body, []byte(`"choices"`)) || !bytes.Contains(w.body, []byte(`"total_tokens"`)) {
			return fmt.Errorf("not a chat completion: %.300s", w.body)
		}
		if full {
			return checkChat(w.body)
		}
	case "embeddings":
		if !bytes.Contains(w.body, []byte(`"embedding"`)) || !bytes.Contains(w.body, []byte(`"usage"`)) {
			return fmt.Errorf("not embeddings: %.300s", w.body)
		}
	case "stream":
		parts := bytes.Count(w.body, []byte(Marker))
		w.sh.minParts = min(w.sh.minParts, parts)
		if parts < w.spec.Chunks || !bytes.HasSuffix(bytes.TrimRight(w.body, "\r\n"), []byte("data: [DONE]")) {
			tail := w.body[max(0, len(w.body)-200):]
			return fmt.Errorf("stream fell short: %d of %d chunks, ends %q", parts, w.spec.Chunks, tail)
		}
		if !bytes.Contains(w.body, []byte(`"total_tokens"`)) {
			w.sh.noUsage++
		}
		if !finished(w.body) {
			w.sh.noFinish++
		}
		if full {
			return checkStream(w.body, w.spec.Chunks)
		}
	}
	return nil
}

type completion struct {
	Choices []struct {
		Message struct {
			Role, Content string
		}
		Delta struct {
			Content string
		}
		FinishReason *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
}

func checkChat(b []byte) error {
	var c completion
	if err := json.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("%w: %.300s", err, b)
	}
	switch {
	case len(c.Choices) == 0 || !strings.Contains(c.Choices[0].Message.Content, Marker):
		return fmt.Errorf("no content in choices: %.300s", b)
	case c.Choices[0].FinishReason == nil || *c.Choices[0].FinishReason == "":
		return fmt.Errorf("no finish_reason: %.300s", b)
	case c.Usage == nil || c.Usage.Prompt != 120 || c.Usage.Completion == 0:
		return fmt.Errorf("usage is not the upstream's: %.800s", b)
	}
	return nil
}

func checkStream(b []byte, want int) error {
	n := 0
	for ev := range bytes.SplitSeq(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n\n")) {
		for line := range bytes.SplitSeq(ev, []byte("\n")) {
			data, ok := bytes.CutPrefix(line, []byte("data:"))
			data = bytes.TrimSpace(data)
			if !ok || string(data) == "[DONE]" {
				continue
			}
			var c completion
			if err := json.Unmarshal(data, &c); err != nil {
				return fmt.Errorf("%w: %.300s", err, data)
			}
			for _, ch := range c.Choices {
				n += strings.Count(ch.Delta.Content, Marker)
			}
		}
	}
	if n != want {
		return fmt.Errorf("%d content chunks of %d", n, want)
	}
	return nil
}

// finished reports whether the end of a stream contains a finish_reason that is a string.
func finished(b []byte) bool {
	const key = `"finish_reason":`
	for b = b[max(0, len(b)-2048):]; ; {
		i := bytes.Index(b, []byte(key))
		if i < 0 {
			return false
		}
		b = bytes.TrimLeft(b[i+len(key):], " ")
		if len(b) > 1 && b[0] == '"' && b[1] != '"' {
			return true
		}
	}
}
