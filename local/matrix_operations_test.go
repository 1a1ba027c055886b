package main

import (
	"encoding/json"
	"strings"

	"gateway/shared/provider"
)

// otherOperation is an operation that is no conversation.
type otherOperation struct {
	operation    provider.Operation
	path         string
	body, failed string // MODEL and TAG as in client
	good         func(w *cellRequest, v any) bool
	usage        bool
}

var otherOperations = []otherOperation{
	{provider.Embeddings, "/embeddings", `{"model":"MODEL","input":["red fish TAG"]}`, `{"model":"MODEL","input":["` + mxError + `"]}`, func(_ *cellRequest, v any) bool {
		vector, _ := at(v, "data", 0, "embedding").([]any)
		return len(vector) > 0
	}, true},
	{provider.Rerank, "/rerank", `{"model":"MODEL","query":"blue bird","documents":["red fish TAG","a blue bird"]}`, `{"model":"MODEL","query":"` + mxError + `","documents":["a blue bird"]}`, func(_ *cellRequest, v any) bool {
		results, _ := at(v, "results").([]any)
		_, scored := at(v, "results", 1, "relevance_score").(float64)
		return len(results) == 2 && scored
	}, false},
	{provider.Moderations, "/moderations", `{"model":"MODEL","input":"Hello TAG"}`, `{"model":"MODEL","input":"` + mxError + `"}`, func(_ *cellRequest, v any) bool {
		results, _ := at(v, "results").([]any)
		return len(results) == 1
	}, false},
	{provider.ImagesGenerate, "/images/generations", `{"model":"MODEL","prompt":"A red fish TAG"}`, `{"model":"MODEL","prompt":"` + mxError + `"}`, func(_ *cellRequest, v any) bool {
		return textAt(v, "data", 0, "b64_json") != "" || textAt(v, "data", 0, "url") != ""
	}, false},
	{provider.AudioSpeech, "/audio/speech", `{"model":"MODEL","input":"Hello TAG","voice":"alloy"}`, `{"model":"MODEL","input":"` + mxError + `","voice":"alloy"}`, func(w *cellRequest, _ any) bool {
		return len(w.body) > 0 && strings.HasPrefix(w.header.Get("Content-Type"), "audio/")
	}, false},
}

func (m *matrix) other(p *provider.Provider, o *otherOperation) matrixRow {
	row := matrixRow{provider: p.ID, operation: string(o.operation), model: example(p, o.operation, colPlain)}
	w := m.send(p, o.operation, colPlain, o.path, o.body)
	var v any
	_ = json.Unmarshal([]byte(w.body), &v)
	if w.status == 200 && w.sent != nil && o.good(w, v) {
		row.cells[colPlain] = yes
	} else {
		row.cells[colPlain] = m.refused(p, o.operation, colPlain, w)
	}
	if o.usage && w.status == 200 {
		m.billed(w)
		row.cells[colUsage] = absent
		n, want := countAt(v, "usage", "prompt_tokens"), int64(len("red fish "+w.tag)+3)/4 // an estimate if the provider reports none
		if w.bill != nil {
			want = w.bill.Input
		}
		if n > 0 && w.bill != nil && n == want {
			row.cells[colUsage] = yes
		} else if n > 0 && n != want {
			m.t.Errorf("%s %s: told %d, billed %+v", p.ID, o.operation, n, w.bill)
		}
	}
	failed := m.send(p, o.operation, colErrors, o.path, o.failed)
	if row.cells[colErrors] = yes; failed.sent == nil || failed.status != 429 || failed.header.Get("Retry-After") != "3" {
		row.cells[colErrors] = m.refused(p, o.operation, colErrors, failed)
	}
	return row
}
