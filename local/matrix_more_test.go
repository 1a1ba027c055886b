package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"gateway/shared/provider"
)

// furtherOperations are the columns of the table of what is neither a conversation
// nor a job.
var furtherOperations = []struct {
	op   provider.Operation
	name string
}{
	{provider.ImagesEdit, "image edit"}, {provider.ImagesVariation, "image variation"}, {provider.AudioTranscription, "transcription"}, {provider.AudioTranslation, "translation"},
	{provider.OCR, "ocr"}, {provider.MessagesCountTokens, "count tokens"}, {provider.ModelsList, "models"},
	{provider.ResponsesGet, "response"}, {provider.ResponsesInputItems, "its input"}, {provider.ResponsesCancel, "its end"}, {provider.ResponsesDelete, "its deletion"},
	{provider.ResponsesCompact, "compact"}, {provider.ResponsesCount, "input tokens"}, {provider.Decisions, "decision"},
}

// estimated is the mark of tokens that the gateway counted itself.
const estimated = "estimate"

// formsOf are the bodies of operations that take a form.
var formsOf = map[provider.Operation]struct{ path, body string }{
	provider.ImagesEdit:         {"/images/edits", form("model", "MODEL", "prompt", "A red fish", "image", "a.png:picture")},
	provider.ImagesVariation:    {"/images/variations", form("model", "MODEL", "image", "a.png:picture")},
	provider.AudioTranscription: {"/audio/transcriptions", form("model", "MODEL", "file", "a.mp3:sound")},
	provider.AudioTranslation:   {"/audio/translations", form("model", "MODEL", "file", "a.mp3:sound")},
}

// furtherBodies are those of the others that are sent with a body.
var furtherBodies = map[provider.Operation]struct{ path, body string }{
	provider.OCR:                 {"/ocr", `{"model":"MODEL","document":{"type":"document_url","document_url":"data:application/pdf;base64,JVBERi0="}}`},
	provider.ResponsesCompact:    {"/responses/compact", `{"model":"MODEL","input":"Hello TAG"}`},
	provider.ResponsesCount:      {"/responses/input_tokens", `{"model":"MODEL","input":"Hello TAG"}`},
	provider.Decisions:           {"/decisions", `{"model":"MODEL","input":"Hello TAG"}`},
	provider.MessagesCountTokens: {"/messages/count_tokens", `{"model":"MODEL","messages":[{"role":"user","content":"Hello TAG"}]}`},
}

// further tries the operations of the second table.
func (m *matrix) further(p *provider.Provider) map[provider.Operation]string {
	m.passes(p)
	cells := map[provider.Operation]string{}
	response := ""
	for _, o := range furtherOperations {
		switch o.op {
		case provider.ModelsList:
			if p.Serves(o.op) {
				cells[o.op] = m.models(p)
			}
		case provider.ResponsesGet, provider.ResponsesInputItems, provider.ResponsesCancel, provider.ResponsesDelete:
			if p.Serves(o.op) {
				cells[o.op] = m.storedResponse(p, o.op, &response)
			}
		default:
			cells[o.op] = m.once(p, o.op)
		}
	}
	return cells
}

// once tries an operation that is one request; "" when the provider has it not.
func (m *matrix) once(p *provider.Provider, op provider.Operation) string {
	template, isForm := formsOf[op]
	if !isForm {
		template = furtherBodies[op]
	}
	counts := op == provider.MessagesCountTokens || op == provider.ResponsesCount // the gateway does where the provider does not
	if !p.Serves(op) && !counts {
		if !isForm && len(p.Routes) > 0 {
			m.unsupported(p, op, template.path, template.body)
		} else if isForm && len(p.Routes) > 0 {
			if got := m.sendForm(p, op, template.path, template.body); got.status != 400 || got.sent != nil || !strings.Contains(got.body, "not supported") {
				m.t.Errorf("%s %s, which it has not: %d %.300s", p.ID, op, got.status, got.body)
			}
		}
		return ""
	}
	if _, _, talks := p.UpstreamDialect(provider.Messages, provider.AnthropicMessages); counts && !talks {
		return ""
	}
	w := (*cellRequest)(nil)
	if isForm {
		w = m.sendForm(p, op, template.path, template.body)
	} else {
		w = m.send(p, op, colPlain, template.path, template.body)
	}
	var v any
	_ = json.Unmarshal([]byte(w.body), &v)
	good := false
	switch op {
	case provider.ImagesEdit, provider.ImagesVariation:
		good = textAt(v, "data", 0, "url") != "" || textAt(v, "data", 0, "b64_json") != ""
	case provider.AudioTranscription, provider.AudioTranslation:
		good = strings.Contains(textAt(v, "text"), "bytes")
	case provider.OCR:
		good = textAt(v, "pages", 0, "markdown") == "# One"
	case provider.ResponsesCompact:
		good = textAt(v, "object") == "response.compaction" && countAt(v, "usage", "input_tokens") > 0
	case provider.Decisions:
		good = textAt(v, "decision") == "yes"
	case provider.MessagesCountTokens, provider.ResponsesCount:
		good = countAt(v, "input_tokens") > 0
		if good && w.sent == nil && w.status == 200 {
			return estimated
		}
	}
	if good && w.status == 200 && w.sent != nil {
		return yes
	}
	return m.refused(p, op, colPlain, w)
}

// sendForm is ask for a form.
func (m *matrix) sendForm(p *provider.Provider, op provider.Operation, path, body string) *cellRequest {
	w := &cellRequest{tag: fmt.Sprintf("mx%05dx", m.serial.Add(1))}
	got, err := m.try("POST", path, strings.ReplaceAll(body, "MODEL", "@m-"+p.ID+"/"+example(p, op, colPlain)+"-"+w.tag), formType...)
	if err != nil {
		m.t.Errorf("%s %s: %v", p.ID, op, err)
	}
	w.reply = got
	if sent, ok := m.sent.Load(w.tag); ok {
		w.sent = sent.(*sentOn)
	}
	return w
}

// models asks for the provider's own list of models.
func (m *matrix) models(p *provider.Provider) string {
	got, err := m.try("GET", "/models", "", "X-Gateway-Provider", "@m-"+p.ID)
	if err == nil && got.status == 200 {
		if list, _ := at(got.json(m.t), "data").([]any); len(list) > 0 {
			return yes
		}
		if list, _ := at(got.json(m.t), "models").([]any); len(list) > 0 {
			return yes
		}
	}
	m.t.Errorf("%s models: %v %d %.300s", p.ID, err, got.status, got.body)
	return "?"
}

// storedResponse reads, and at last deletes, a response that was stored.
func (m *matrix) storedResponse(p *provider.Provider, op provider.Operation, id *string) string {
	on := []string{"X-Gateway-Provider", "@m-" + p.ID}
	if *id == "" {
		made, _ := m.try("POST", "/responses", `{"model":"`+example(p, provider.ResponsesCreate, colPlain)+`","store":true,"background":true,"input":"Hello"}`, on...)
		takeID(made, id)
	}
	method, path := "GET", "/responses/"+*id
	switch op {
	case provider.ResponsesInputItems:
		path += "/input_items"
	case provider.ResponsesCancel:
		method, path = "POST", path+"/cancel"
	case provider.ResponsesDelete:
		method = "DELETE"
	}
	got, err := m.try(method, path, "", on...)
	if err == nil && got.status == 200 && *id != "" {
		v := got.json(m.t)
		switch op {
		case provider.ResponsesGet, provider.ResponsesCancel:
			if v["id"] == *id && v["object"] == "response" {
				return yes
			}
		case provider.ResponsesInputItems:
			if list, _ := v["data"].([]any); len(list) == 1 {
				return yes
			}
		case provider.ResponsesDelete:
			if v["deleted"] == true {
				return yes
			}
		}
	}
	m.t.Errorf("%s %s of %q: %v %d %.300s", p.ID, op, *id, err, got.status, got.body)
	return "?"
}

// passes sends a request through as it is: the path and the body arrive byte for
// byte, with the provider's key where the provider looks for it and no key of the
// gateway's.
func (m *matrix) passes(p *provider.Provider) {
	const body = `{ "odd" : 1 , "odd" : 2 }`
	got, err := m.try("POST", "/proxy/echo//a%2Fb;c?x=1;2", body, "X-Gateway-Provider", "@m-"+p.ID)
	if err != nil || got.status != 200 {
		m.t.Errorf("%s pass-through: %v %d %.300s", p.ID, err, got.status, got.body)
		return
	}
	a := echoed(m.t, got)
	if a.Method != "POST" || a.RawPath != "/echo//a%2Fb;c" || !strings.HasPrefix(a.RawQuery, "x=1;2") || a.Text != body || strings.Contains(got.body, workspaceKey) || !carriesKey(p, a) {
		m.t.Errorf("%s pass-through: %.600s", p.ID, got.body)
	}
}

// carriesKey reports whether a request that arrived has the key where the row of the
// provider says.
func carriesKey(p *provider.Provider, a arrived) bool {
	first := func(name string) string { return append(a.Headers[name], "")[0] }
	switch auth := p.Auth; auth.Scheme {
	case provider.HeaderAuth:
		return first(http.CanonicalHeaderKey(auth.Name)) == auth.Prefix+"mock-key"
	case provider.QueryAuth:
		return a.RawQuery == "x=1;2&"+auth.Name+"=mock-key"
	case provider.AzureAuth:
		return first(http.CanonicalHeaderKey(auth.Name)) == auth.Prefix+"mock-key"
	case provider.SigV4Auth, provider.GoogleOAuth:
		return first("Authorization") == "Bearer mock-key"
	case provider.OCIAuth:
		return strings.HasPrefix(first("Authorization"), `Signature version="1",keyId="t/u/aa:bb"`)
	}
	return false
}

// renderFurther is the second table: providers with more than tokens that are
// estimated.
func renderFurther(b *bytes.Buffer, done []map[provider.Operation]string) {
	b.WriteString("\n## Further operations\n\nestimate: the provider counts no tokens, the gateway says what it reckons, as it does\nfor all providers with conversations that are not listed. To every provider of the\ncatalog any path goes through as it is, with the provider's key where the provider\nlooks for it; the test proves that for each.\n\n| provider |")
	for _, o := range furtherOperations {
		b.WriteString(" " + o.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(furtherOperations)) + "\n")
	for i, p := range provider.All() {
		line, some := "| "+p.ID+" |", false
		for _, o := range furtherOperations {
			cell := done[i][o.op]
			line += " " + cell + " |"
			some = some || cell != "" && cell != estimated
		}
		if some {
			b.WriteString(line + "\n")
		}
	}
}
