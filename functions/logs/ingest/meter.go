package ingest

import (
	"bytes"
	"encoding/json"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/dialect/upstream"
)

// endings are ends of paths with the types of requests that are sent there, the longer
// before those that end like them.
var endings = []struct{ path, endpoint string }{
	{"/chat/completions", "chatComplete"}, {"/completions", "complete"}, {"/embeddings", "embed"}, {"/rerank", "rerank"}, {"/moderations", "moderate"},
	{"/responses", "createModelResponse"}, {"/messages", "messages"}, {"/images/generations", "imageGenerate"}, {"/audio/speech", "createSpeech"},
	{"/audio/transcriptions", "createTranscription"}, {"/audio/translations", "createTranslation"},
}

// otherEndpoint is the type of every other request.
const otherEndpoint = "log"

func endpointOf(path string) string {
	path = strings.TrimRight(path, "/")
	for _, e := range endings {
		if strings.HasSuffix(path, e.path) {
			return e.endpoint
		}
	}
	return otherEndpoint
}

func modelIn(request []byte) string {
	var of struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(plainText(request), &of) // a body of another kind names none
	return of.Model
}

// plainText is what a body says: one that is a JSON string is the text in it.
func plainText(body []byte) []byte {
	var text string
	if len(body) > 0 && body[0] == '"' && json.Unmarshal(body, &text) == nil {
		return []byte(text)
	}
	if string(body) == "null" {
		return nil
	}
	return body
}

// shape has the fields that identify a provider's response format.
type shape struct {
	Object        string          `json:"object"`
	Type          string          `json:"type"`
	Choices       json.RawMessage `json:"choices"`
	UsageMetadata json.RawMessage `json:"usageMetadata"`
	Candidates    json.RawMessage `json:"candidates"`
	Output        json.RawMessage `json:"output"`
	StopReason    json.RawMessage `json:"stopReason"`
}

func (s *shape) dialect() chat.Passer {
	switch {
	case s.Object == "response" || strings.HasPrefix(s.Type, "response."):
		return upstream.Passer(responses.Responses{})
	case s.Type == "message" || strings.HasPrefix(s.Type, "message_") || strings.HasPrefix(s.Type, "content_block_"):
		return upstream.Passer(anthropic.Messages{})
	case s.UsageMetadata != nil || s.Candidates != nil:
		return upstream.Passer(gemini.Generate{})
	case s.StopReason != nil && s.Output != nil:
		return upstream.Passer(converse.Converse{})
	}
	return upstream.Passer(openai.Chat{})
}

// meter reads the usage out of an answer, whoever gave it: the shape is that of the
// answer, since it may have come through another gateway.
func meter(x *Exchange) chat.Meter {
	body := plainText(x.Response)
	if pieces, ok := events(body); ok {
		f := shapeOf(pieces[0]).dialect().NewStreamFilter(&chat.FilterOptions{IncludeUsage: true})
		for _, data := range pieces {
			if _, err := f.Feed(event(data)); err != nil {
				break
			}
		}
		f.End()
		return f.Meter()
	}
	return shapeOf(body).dialect().MeterResponse(body)
}

func shapeOf(body []byte) *shape {
	s := new(shape)
	_ = json.Unmarshal(body, s) // what it cannot read is no shape of ours
	return s
}

// event frames a piece of a stream as the provider did, as far as dialects ask for it.
func event(data []byte) []byte {
	out := []byte("data: ")
	if kind := shapeOf(data).Type; kind != "" && !strings.ContainsAny(kind, "\r\n") {
		out = []byte("event: " + kind + "\ndata: ")
	}
	return append(append(out, data...), "\n\n"...)
}

// events are the pieces of a streamed answer: a list of them, or the text of
// server-sent events; ok is false for other bodies.
func events(body []byte) (pieces [][]byte, ok bool) {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil {
			return nil, false
		}
		for _, piece := range list {
			var line bytes.Buffer
			if json.Compact(&line, piece) == nil {
				pieces = append(pieces, line.Bytes())
			}
		}
		return pieces, len(pieces) > 0
	}
	if !bytes.HasPrefix(body, []byte("data:")) && !bytes.HasPrefix(body, []byte("event:")) {
		return nil, false
	}
	for line := range bytes.Lines(body) {
		if data, is := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); is {
			pieces = append(pieces, bytes.TrimSpace(data))
		}
	}
	return pieces, len(pieces) > 0
}
