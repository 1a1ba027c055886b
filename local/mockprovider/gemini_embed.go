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
		if e := known(v, "", "requests"); e != nil {
			return e
		}
		requests = v.get("requests").arr
		if len(requests) == 0 || len(requests) > 100 {
			return invalid("* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch")
		}
	}
	var b []byte
	tokens := int64(0)
	for i, r := range requests {
		if e := known(r, "requests", "model", "content", "taskType", "title", "outputDimensionality", "autoTruncate"); e != nil {
			return e
		}
		if m := r.get("model").s; batch && m != "models/"+x.model {
			return invalid("* BatchEmbedContentsRequest.requests[%d].model: must be models/%s, not %s", i, x.model, m)
		}
		parts := r.get("content").get("parts").arr
		if len(parts) == 0 {
			return invalid("* EmbedContentRequest.content: contents is not specified")
		}
		var words strings.Builder
		for _, p := range parts {
			words.WriteString(p.get("text").s)
		}
		size := 3072
		if n, ok := r.get("outputDimensionality").integer(); ok {
			if n < 1 || n > 3072 {
				return invalid("* EmbedContentRequest.output_dimensionality: must be in the range [1, 3072]")
			}
			size = int(n)
		}
		if e := steerBy(&x.st, words.String()); e != nil {
			return e
		}
		tokens += tokensOf(words.String())
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendVector(append(b, `{"values":`...), embed(words.String(), size), false), '}')
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
func vertexPredict(x *exchange, vertex bool) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := known(v, "", "instances", "parameters", "labels"); e != nil {
		return e
	}
	instances := v.get("instances").arr
	if len(instances) == 0 {
		return invalid("Empty instances.")
	}
	if strings.HasPrefix(x.model, "imagen") {
		return imagen(x, v, instances, vertex)
	}
	if e := known(v.get("parameters"), "parameters", "outputDimensionality", "autoTruncate"); e != nil {
		return e
	}
	size := 768
	if n, ok := v.get("parameters").get("outputDimensionality").integer(); ok {
		size = int(min(max(n, 1), 3072))
	}
	b := []byte(`{"predictions":[`)
	total := int64(0)
	for i, in := range instances {
		if e := known(in, "instances", "content", "task_type", "title"); e != nil {
			return e
		}
		s := in.get("content")
		if s.kind != text || s.s == "" {
			return invalid("The text content is empty.")
		}
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
func imagen(x *exchange, v value, instances []value, vertex bool) *apiError {
	p := v.get("parameters")
	fields := strings.Fields("sampleCount aspectRatio personGeneration safetySetting language outputOptions sampleImageSize guidanceScale sampleImageStyle")
	if vertex {
		fields = append(fields, "seed", "negativePrompt", "addWatermark", "enhancePrompt", "storageUri")
	}
	if e := known(p, "parameters", fields...); e != nil {
		return e
	}
	n, ok := p.get("sampleCount").integer()
	if !ok || n < 1 || n > 8 {
		return invalid("sampleCount must be between 1 and 8")
	}
	if instances[0].get("prompt").s == "" {
		return invalid("The prompt is empty.")
	}
	if e := steerBy(&x.st, instances[0].get("prompt").s); e != nil {
		return e
	}
	image := `{"mimeType":"image/png","bytesBase64Encoded":"` + picture + `"}`
	if x.st.reject {
		image = `{"raiFilteredReason":"Unable to show generated images."}`
	}
	return embedded(x, fill(`{"predictions":[$]}`, json.RawMessage(strings.TrimSuffix(strings.Repeat(image+",", int(n)), ","))), 0)
}
