package mockprovider

import (
	"encoding/json"
	"strings"
)

// geminiEmbed serves :embedContent and :batchEmbedContents. Like the provider it does not
// report usage; it is billed.
func geminiEmbed(x *exchange, batch bool) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	requests := []value{v}
	if batch {
		if requests = v.get("requests").arr; len(requests) == 0 || len(requests) > 100 || len(v.obj) != 1 {
			return invalid("* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch")
		}
	}
	var b []byte
	tokens := int64(0)
	for i, r := range requests {
		if e := geminiError(bodies()["gemini-embedding"].check(r, "requests.")); e != nil {
			return e
		}
		if m := r.get("model").s; batch && m != "models/"+x.model {
			return invalid("* BatchEmbedContentsRequest.requests[%d].model: must be models/%s, not %s", i, x.model, m)
		}
		words := plainText(r.at("content.parts"))
		size := 3072
		if n, ok := r.get("outputDimensionality").integer(); ok {
			size = int(n)
		}
		if e := steerBy(&x.st, words); e != nil {
			return e
		}
		tokens += tokensOf(words)
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendVector(append(b, `{"values":`...), embed(words, size), false), '}')
	}
	head, tail := `{"embedding":`, `}`
	if batch {
		head, tail = `{"embeddings":[`, `]}`
	}
	return embedded(x, append(append([]byte(head), b...), tail...), tokens)
}

// laterEmbedding reports whether Vertex AI serves a model by :embedContent only.
func laterEmbedding(model string) bool {
	return strings.HasPrefix(model, "gemini-embedding-") && model != "gemini-embedding-001"
}

// embedded responds with vectors, and with the faults that were ordered.
func embedded(x *exchange, body []byte, tokens int64) *apiError {
	id, done, e := begin(x, "embd-", string(x.body))
	if done {
		return e
	}
	x.plain(id, body, Usage{Input: tokens})
	return nil
}

// vertexPredict serves :predict of embedding models and of Imagen.
func vertexPredict(x *exchange) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if strings.HasPrefix(x.model, "imagen") {
		return imagen(x, v)
	}
	if e := geminiError(bodies()["gemini-vectors"].check(v, "")); e != nil {
		return e
	}
	size := 768
	if n, ok := v.get("parameters").get("outputDimensionality").integer(); ok {
		size = int(min(max(n, 1), 3072))
	}
	b := []byte(`{"predictions":[`)
	total := int64(0)
	for i, in := range v.get("instances").arr {
		s := in.get("content")
		if e := steerBy(&x.st, s.s); e != nil {
			return e
		}
		n := tokensOf(s.s)
		total += n
		if i > 0 {
			b = append(b, ',')
		}
		b = appendVector(append(b, `{"embeddings":{"values":`...), embed(s.s, size), false)
		b = append(b, fill(`,"statistics":{"truncated":false,"token_count":$}}}`, n)...)
	}
	return embedded(x, append(b, `]}`...), total)
}

// imagen makes pictures of one pixel.
func imagen(x *exchange, v value) *apiError {
	if e := geminiError(bodies()["gemini-pictures"].check(v, "")); e != nil {
		return e
	}
	n, _ := v.at("parameters.sampleCount").integer()
	if e := steerBy(&x.st, v.at("instances.0.prompt").s); e != nil {
		return e
	}
	image := `{"mimeType":"image/png","bytesBase64Encoded":"` + picture + `"}`
	if x.st.reject {
		image = `{"raiFilteredReason":"Unable to show generated images."}`
	}
	return embedded(x, fill(`{"predictions":[$]}`, json.RawMessage(strings.TrimSuffix(strings.Repeat(image+",", int(n)), ","))), 0)
}
