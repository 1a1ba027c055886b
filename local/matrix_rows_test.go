package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"gateway/local/mockprovider"
	"gateway/shared/chat"
	"gateway/shared/provider"
)

// client is the shape in which a conversation is asked for: bodies by column, %s
// for the model, and how the responses are read.
type client struct {
	operation provider.Operation
	dialect   string
	path      string
	bodies    [columns]string
	stream    func([]byte) (*mockprovider.StreamResult, error)
	read      func(any) plainAnswer
}

// plainAnswer is what a response that is no stream says.
type plainAnswer struct {
	text, tool         string
	prompt, completion int64 // -1: not told
}

const (
	tinyPNG  = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	mxSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	mxTool   = `"name":"get_weather","description":"The weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`
	mxText   = `mock: say=Hello there\nTAG`
	mxThink  = `mock: reasoning=5\nThink TAG`
	mxError  = `mock: status=429 retry-after=3\nTAG`
)

var clients = []client{
	{
		operation: provider.Chat, dialect: provider.OpenAIChat, path: "/chat/completions", stream: mockprovider.ReadOpenAIStream, read: readChatAnswer,
		bodies: [columns]string{
			colPlain:    `{"model":"MODEL","messages":[{"role":"user","content":"` + mxText + `"}]}`,
			colStream:   `{"model":"MODEL","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"` + mxText + `"}]}`,
			colTools:    `{"model":"MODEL","messages":[{"role":"user","content":"weather? TAG"}],"tools":[{"type":"function","function":{` + mxTool + `}}]}`,
			colImages:   `{"model":"MODEL","messages":[{"role":"user","content":[{"type":"text","text":"` + mxText + `"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + tinyPNG + `"}}]}]}`,
			colSchema:   `{"model":"MODEL","messages":[{"role":"user","content":"Give n TAG"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":` + mxSchema + `}}}`,
			colThinking: `{"model":"MODEL","reasoning_effort":"high","messages":[{"role":"user","content":"` + mxThink + `"}]}`,
			colErrors:   `{"model":"MODEL","messages":[{"role":"user","content":"` + mxError + `"}]}`,
		},
	},
	{
		operation: provider.Messages, dialect: provider.AnthropicMessages, path: "/messages", stream: mockprovider.ReadAnthropicStream, read: readMessagesAnswer,
		bodies: [columns]string{
			colPlain:    `{"model":"MODEL","max_tokens":100,"messages":[{"role":"user","content":"` + mxText + `"}]}`,
			colStream:   `{"model":"MODEL","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"` + mxText + `"}]}`,
			colTools:    `{"model":"MODEL","max_tokens":100,"messages":[{"role":"user","content":"weather? TAG"}],"tools":[{` + strings.Replace(mxTool, `"parameters"`, `"input_schema"`, 1) + `}]}`,
			colImages:   `{"model":"MODEL","max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":"` + mxText + `"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + tinyPNG + `"}}]}]}`,
			colSchema:   `{"model":"MODEL","max_tokens":100,"messages":[{"role":"user","content":"Give n TAG"}],"output_config":{"format":{"type":"json_schema","schema":` + mxSchema + `}}}`,
			colThinking: `{"model":"MODEL","max_tokens":3000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"` + mxThink + `"}]}`,
			colErrors:   `{"model":"MODEL","max_tokens":100,"messages":[{"role":"user","content":"` + mxError + `"}]}`,
		},
	},
	{
		operation: provider.ResponsesCreate, dialect: provider.OpenAIResponses, path: "/responses", stream: mockprovider.ReadResponsesStream, read: readResponsesAnswer,
		bodies: [columns]string{
			colPlain:    `{"model":"MODEL","input":"` + mxText + `"}`,
			colStream:   `{"model":"MODEL","stream":true,"input":"` + mxText + `"}`,
			colTools:    `{"model":"MODEL","input":"weather? TAG","tools":[{"type":"function",` + mxTool + `}]}`,
			colImages:   `{"model":"MODEL","input":[{"role":"user","content":[{"type":"input_text","text":"` + mxText + `"},{"type":"input_image","image_url":"data:image/png;base64,` + tinyPNG + `"}]}]}`,
			colSchema:   `{"model":"MODEL","input":"Give n TAG","text":{"format":{"type":"json_schema","name":"a","strict":true,"schema":` + mxSchema + `}}}`,
			colThinking: `{"model":"MODEL","reasoning":{"effort":"high"},"input":"` + mxThink + `"}`,
			colErrors:   `{"model":"MODEL","input":"` + mxError + `"}`,
		},
	},
	{
		operation: provider.Completions, dialect: provider.OpenAICompletions, path: "/completions", stream: readTextStream, read: readTextAnswer,
		bodies: [columns]string{
			colPlain:  `{"model":"MODEL","max_tokens":100,"prompt":"` + mxText + `"}`,
			colStream: `{"model":"MODEL","max_tokens":100,"stream":true,"stream_options":{"include_usage":true},"prompt":"` + mxText + `"}`,
			colErrors: `{"model":"MODEL","max_tokens":100,"prompt":"` + mxError + `"}`,
		},
	},
}

// at walks down a response: names of members and indexes.
func at(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

func textAt(v any, path ...any) string { s, _ := at(v, path...).(string); return s }

func countAt(v any, path ...any) int64 {
	n, ok := at(v, path...).(float64)
	if !ok {
		return -1
	}
	return int64(n)
}

func readChatAnswer(v any) plainAnswer {
	return plainAnswer{textAt(v, "choices", 0, "message", "content"), textAt(v, "choices", 0, "message", "tool_calls", 0, "function", "name"), countAt(v, "usage", "prompt_tokens"), countAt(v, "usage", "completion_tokens")}
}

func readMessagesAnswer(v any) plainAnswer {
	a := plainAnswer{prompt: countAt(v, "usage", "input_tokens"), completion: countAt(v, "usage", "output_tokens")}
	a.prompt += max(0, countAt(v, "usage", "cache_read_input_tokens")) + max(0, countAt(v, "usage", "cache_creation_input_tokens"))
	blocks, _ := at(v, "content").([]any)
	for _, b := range blocks {
		a.text += textAt(b, "text")
		if textAt(b, "type") == "tool_use" {
			a.tool = textAt(b, "name")
		}
	}
	return a
}

func readResponsesAnswer(v any) plainAnswer {
	a := plainAnswer{prompt: countAt(v, "usage", "input_tokens"), completion: countAt(v, "usage", "output_tokens")}
	items, _ := at(v, "output").([]any)
	for _, item := range items {
		switch textAt(item, "type") {
		case "message":
			a.text += textAt(item, "content", 0, "text")
		case "function_call":
			a.tool = textAt(item, "name")
		}
	}
	return a
}

func readTextAnswer(v any) plainAnswer {
	return plainAnswer{textAt(v, "choices", 0, "text"), "", countAt(v, "usage", "prompt_tokens"), countAt(v, "usage", "completion_tokens")}
}

func readTextStream(body []byte) (*mockprovider.StreamResult, error) {
	s := &mockprovider.StreamResult{Prompt: -1, Completion: -1}
	list := events(string(body))
	for i, data := range list {
		if data == "[DONE]" {
			if i != len(list)-1 {
				return s, fmt.Errorf("something follows [DONE]")
			}
			return s, nil
		}
		var v any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			return s, err
		}
		s.Text += textAt(v, "choices", 0, "text")
		if n := countAt(v, "usage", "prompt_tokens"); n >= 0 {
			s.Prompt, s.Completion = n, countAt(v, "usage", "completion_tokens")
		}
	}
	return s, fmt.Errorf("the stream ends without [DONE]")
}

// provider tries all operations of a provider.
func (m *matrix) provider(p *provider.Provider) []matrixRow {
	var rows []matrixRow
	for _, c := range clients {
		if _, _, ok := p.UpstreamDialect(c.operation, c.dialect); !ok && !(c.operation == provider.Completions && p.Serves(c.operation)) {
			m.unsupported(p, c.operation, c.path, c.bodies[colPlain])
			continue
		}
		rows = append(rows, m.conversation(p, &c))
	}
	for _, o := range otherOperations {
		if !p.Serves(o.operation) {
			m.unsupported(p, o.operation, o.path, o.body)
			continue
		}
		rows = append(rows, m.other(p, &o))
	}
	return rows
}

// goesThrough are operations that a host of one's own is asked for, known or not.
var goesThrough = map[provider.Operation]bool{
	provider.Rerank: true, provider.Moderations: true, provider.OCR: true,
	provider.ResponsesCompact: true, provider.Decisions: true,
}

// unsupported proves that an operation that the catalog has not is rejected, and
// by its name.
func (m *matrix) unsupported(p *provider.Provider, op provider.Operation, path, body string) {
	w := m.send(p, op, colPlain, path, body)
	if p.Dialect == provider.OpenAIChat && goesThrough[op] && w.sent != nil {
		// The provider's own host is not asked.
		if p.Base == "" || strings.HasPrefix(p.Base, "{") {
			return
		}
		w = m.sendDirectly(p, path, body)
	}
	if w.status != 400 || w.sent != nil || !strings.Contains(w.body, "not supported") {
		m.t.Errorf("%s %s, which it has not: %d %.300s", p.ID, op, w.status, w.body)
	}
}

func (m *matrix) conversation(p *provider.Provider, c *client) matrixRow {
	row := matrixRow{provider: p.ID, operation: string(c.operation), model: example(p, c.operation, colPlain)}
	var requests [columns]*cellRequest
	for column, body := range c.bodies {
		if body == "" {
			continue
		}
		w := m.send(p, c.operation, column, c.path, body)
		requests[column] = w
		if good := m.carried(c, column, w); good != "" {
			if row.cells[column] = good; lacks(p, example(p, c.operation, column), column) {
				row.cells[column] = no
			}
		} else {
			row.cells[column] = m.refused(p, c.operation, column, w)
		}
	}
	m.billed(requests[:]...)
	row.cells[colUsage] = m.usage(p, c, requests[colPlain], requests[colStream])
	return row
}

// lacks returns what the tables say that a model cannot do at the provider's own address.
// They do not apply at the mock's.
func lacks(p *provider.Provider, model string, column int) bool {
	t := p.Traits(model)
	return column == colTools && t.NoTools || column == colImages && t.NoImages || column == colSchema && t.Schema == chat.SchemaNone
}

// carried gives yes or told when the response of a column carried what was asked.
func (m *matrix) carried(c *client, column int, w *cellRequest) string {
	if column == colErrors {
		if w.sent != nil && w.status == 429 && strings.Contains(w.body, "rate_limit") && w.header.Get("Retry-After") == "3" {
			return yes
		}
		return ""
	}
	if w.status != 200 || w.sent == nil {
		return ""
	}
	if column == colStream {
		if s, err := c.stream([]byte(w.body)); err == nil && strings.Contains(s.Text, "Hello there") {
			return yes
		}
		return ""
	}
	a := c.read(w.json(m.t))
	good := false
	switch column {
	case colPlain:
		good = strings.Contains(a.text, "Hello there")
	case colTools:
		good = a.tool == "get_weather"
	case colImages:
		good = strings.Contains(a.text, "Hello there") && bytes.Contains(w.sent.Body, []byte(tinyPNG))
	case colSchema:
		var v struct{ N *int }
		good = json.Unmarshal([]byte(a.text), &v) == nil && v.N != nil
	case colThinking:
		reported := strings.Contains(w.header.Get("X-Gateway-Translation"), "reasoning") || strings.Contains(w.header.Get("X-Gateway-Translation"), "thinking")
		if reported && a.text != "" && !thinks(w.sent.Body) {
			return lost
		}
		good = a.text != "" && thinks(w.sent.Body)
	}
	if good {
		return yes
	}
	return ""
}

// thinks reports whether a provider's body asks for thinking.
func thinks(body []byte) bool {
	for _, member := range []string{`"reasoning_effort":"high"`, `"reasoning":{"effort":`, `"thinking":{"type":"enabled"`, `"thinking":{"type":"adaptive"`, `"thinkingConfig":`, `"reasoningEffort":`, `"enable_thinking":true`, `"reasoning_effort":`} {
		if bytes.Contains(body, []byte(member)) {
			return true
		}
	}
	return false
}

// usage holds what the client was told against the bill, plain and streamed.
func (m *matrix) usage(p *provider.Provider, c *client, plain, streamed *cellRequest) string {
	reporting := 0
	for _, w := range []*cellRequest{plain, streamed} {
		if w == nil || w.status != 200 {
			continue
		}
		prompt, completion := int64(-1), int64(-1)
		if w == plain {
			a := c.read(w.json(m.t))
			prompt, completion = a.prompt, a.completion
		} else if s, err := c.stream([]byte(w.body)); err == nil {
			prompt, completion = s.Prompt, s.Completion
		}
		if prompt < 0 && completion < 0 || prompt == 0 && completion == 0 {
			continue
		}
		reporting++
		if w.bill == nil {
			m.t.Errorf("%s %s: no row of the bill for %s", p.ID, c.operation, w.tag)
			continue
		}
		u := w.bill.Usage
		if read := u.Input + u.CacheRead + u.CacheWrite5m + u.CacheWrite1h; prompt != read && !(p.ID == "cohere" && prompt > read) || completion != u.Output+u.Reasoning {
			m.t.Errorf("%s %s: told %d and %d tokens, billed %d and %d: %.600s", p.ID, c.operation, prompt, completion, read, u.Output+u.Reasoning, w.body)
			return "?"
		}
	}
	switch reporting {
	case 2:
		return yes
	case 1:
		return "plain or stream"
	}
	return absent
}

// render is the first table of the matrix as Markdown, and what its marks mean.
func (m *matrix) render(b *bytes.Buffer, rows [][]matrixRow) {
	b.WriteString(`# What each provider does

Written by ` + "`make matrix`" + ` from the results of TestMatrix (local/matrix_test.go), which asks
every provider of the catalog through a gateway, in front of the mock provider,
and fails when this file is stale. Each row is tried with the model it names;
another model of the provider may do less, see capability.go. The mock provider
is a host of one's own, where no model is refused for its name: what is refused
at the provider's own address is taken from the tables.

- yes: the answer carried it: the words, a stream with its proper end, the tool
  call, JSON of the schema; the image and the wish to think reached the provider;
  usage, plain and streamed, is what the provider billed; an error of the provider
  kept its status, its code and its Retry-After.
- no: refused with a 4xx that names the field, before anything is sent.
- told: left out, and the header x-gateway-translation of the answer says so, or
  the log where a client keeps to the exact shape of OpenAI.
- absent: the provider tells no usage; the log has an estimate.
- empty: the operation has no such thing.

An operation that is not listed for a provider is refused as unsupported_operation;
the test proves that too. Hosts of OpenAI's shape are asked for rerank, moderations
and OCR where they are known to have them, and at an address of one's own. Bedrock's
own host takes chat completions, Responses and Messages of some models as they come
(shared/relay/native_rows_test.go); its rows here are those of a host of one's own, which
is asked by Converse. Cohere
bills less than the tokens it tells. Providers without any operation of their own are reached by
pass-through.

| provider | operation | model |`)
	for _, name := range columnNames {
		b.WriteString(" " + name + " |")
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", columns) + "\n")
	for _, list := range rows {
		for _, r := range list {
			fmt.Fprintf(b, "| %s | %s | %s |", r.provider, r.operation, r.model)
			for _, cell := range r.cells {
				b.WriteString(" " + cell + " |")
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString("\nBy pass-through only:")
	sep := " "
	for _, p := range provider.All() {
		if len(p.Routes) == 0 {
			b.WriteString(sep + p.ID)
			sep = ", "
		}
	}
	b.WriteString(".\n")
}
