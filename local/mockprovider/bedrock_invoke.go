package mockprovider

import (
	"slices"
	"strconv"
	"strings"
)

// picture is the smallest PNG.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// invoke serves InvokeModel: for models that embed, make images or complete texts, and for
// Claude's own Messages format.
func invoke(x *exchange) *apiError {
	v, err := parseJSON(string(x.body))
	if err != nil || v.kind != object {
		return bedrockInvalid("Malformed input request, please reformat your input and try again.")
	}
	switch m := x.model; {
	case strings.Contains(m, "cohere.embed"):
		return cohereEmbeds(x, v)
	case strings.Contains(m, "embed"):
		return amazonEmbeds(x, v)
	case strings.Contains(m, "titan-image"), strings.Contains(m, "nova-canvas"), strings.Contains(m, "stability."):
		return bedrockImages(x, v)
	case strings.Contains(m, "claude"):
		return claudeInvoked(x, v, false)
	}
	return bedrockInvalid("The provided model does not support this operation.")
}

// invokeStream serves InvokeModelWithResponseStream of Claude.
func invokeStream(x *exchange) *apiError {
	v, err := parseJSON(string(x.body))
	if err != nil || v.kind != object || !strings.Contains(x.model, "claude") {
		return bedrockInvalid("The provided model does not support this operation.")
	}
	return claudeInvoked(x, v, true)
}

// extraneous refuses fields that a model does not know, with the service's message.
func extraneous(v value, names ...string) *apiError {
	for _, m := range v.obj {
		if !slices.Contains(names, m.name) {
			return bedrockInvalid("Malformed input request: #: extraneous key [" + m.name + "] is not permitted, please reformat your input and try again.")
		}
	}
	return nil
}

func amazonEmbeds(x *exchange, v value) *apiError {
	content, size := v.get("inputText").s, int64(1024)
	names := []string{"inputText", "dimensions", "normalize", "embeddingTypes"}
	switch {
	case strings.Contains(x.model, "nova"):
		names = []string{"taskType", "singleEmbeddingParams"}
		p := v.get("singleEmbeddingParams")
		if v.get("taskType").s != "SINGLE_EMBEDDING" || p.get("embeddingPurpose").s == "" {
			return bedrockInvalid("Malformed input request: taskType and embeddingPurpose are required")
		}
		content = p.get("text").get("value").s + p.get("image").s
		if n, ok := p.get("embeddingDimension").integer(); ok {
			size = n
		}
	case strings.Contains(x.model, "image"):
		names = []string{"inputText", "inputImage", "embeddingConfig"}
		content += v.get("inputImage").s
		if n, ok := v.get("embeddingConfig").get("outputEmbeddingLength").integer(); ok {
			size = n
		}
	case strings.Contains(x.model, "v1"):
		names, size = names[:1], 1536
	}
	if e := extraneous(v, names...); e != nil {
		return e
	}
	if content == "" {
		return bedrockInvalid("Malformed input request: expected minLength: 1, actual: 0, please reformat your input and try again.")
	}
	if n, ok := v.get("dimensions").integer(); ok {
		size = n
	}
	if size < 1 || size > 3072 {
		return bedrockInvalid("the dimension is not valid")
	}
	if e := steerBy(&x.st, content); e != nil {
		return e
	}
	tokens := tokensOf(content)
	x.w.Header()["X-Amzn-Bedrock-Input-Token-Count"] = []string{itoa(tokens)}
	vector := appendVector(nil, embed(content, int(size)), false)
	if strings.Contains(x.model, "nova") {
		return bedrockPlain(x, []byte(`{"embeddings":[{"embeddingType":"TEXT","embedding":`+string(vector)+`}]}`), Usage{Input: tokens})
	}
	return bedrockPlain(x, []byte(`{"embedding":`+string(vector)+`,"inputTextTokenCount":`+itoa(tokens)+`}`), Usage{Input: tokens})
}

func cohereEmbeds(x *exchange, v value) *apiError {
	if e := extraneous(v, "texts", "images", "input_type", "truncate", "embedding_types", "output_dimension", "max_tokens"); e != nil {
		return e
	}
	if v.get("input_type").kind != text {
		return bedrockInvalid("Malformed input request: #: required key [input_type] not found, please reformat your input and try again.")
	}
	list := append(v.get("texts").arr, v.get("images").arr...)
	if len(list) == 0 || len(list) > 96 {
		return bedrockInvalid("Malformed input request: #/texts: expected maxItems: 96")
	}
	b, tokens := []byte(`{"id":"mock","embeddings":[`), int64(0)
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		tokens += tokensOf(s.s)
		b = appendVector(b, embed(s.s, 1024), false)
	}
	if e := steerBy(&x.st, list[len(list)-1].s); e != nil {
		return e
	}
	x.w.Header()["X-Amzn-Bedrock-Input-Token-Count"] = []string{itoa(tokens)}
	return bedrockPlain(x, append(b, `],"response_type":"embeddings_floats"}`...), Usage{Input: tokens})
}

func bedrockImages(x *exchange, v value) *apiError {
	n, content := int64(1), v.get("prompt").s
	switch {
	case strings.Contains(x.model, "stable-diffusion-xl"):
		if e := extraneous(v, "text_prompts", "samples", "width", "height", "style_preset", "seed", "cfg_scale", "steps", "sampler", "clip_guidance_preset"); e != nil {
			return e
		}
		if content = ""; len(v.get("text_prompts").arr) > 0 {
			content = v.get("text_prompts").arr[0].get("text").s
		}
	case strings.Contains(x.model, "stability."):
		if e := extraneous(v, "prompt", "negative_prompt", "mode", "aspect_ratio", "output_format", "seed", "image", "strength"); e != nil {
			return e
		}
	default:
		if e := extraneous(v, "taskType", "textToImageParams", "imageGenerationConfig"); e != nil {
			return e
		}
		c := v.get("imageGenerationConfig")
		if e := extraneous(c, "numberOfImages", "width", "height", "quality", "cfgScale", "seed"); e != nil {
			return e
		}
		content = v.get("textToImageParams").get("text").s
		if k, ok := c.get("numberOfImages").integer(); ok {
			n = k
		}
	}
	if content == "" || n < 1 || n > 5 || v.get("taskType").kind != absent && v.get("taskType").s != "TEXT_IMAGE" {
		return bedrockInvalid("Malformed input request, please reformat your input and try again.")
	}
	if e := steerBy(&x.st, content); e != nil {
		return e
	}
	if strings.Contains(x.model, "stable-diffusion-xl") {
		return bedrockPlain(x, []byte(`{"result":"success","artifacts":[{"seed":1,"base64":"`+picture+`","finishReason":"SUCCESS"}]}`), Usage{})
	}
	return bedrockPlain(x, []byte(`{"images":[`+strings.TrimSuffix(strings.Repeat(`"`+picture+`",`, int(n)), ",")+`]}`), Usage{})
}

// bedrockRerank ranks documents by how many words they share with the query.
func bedrockRerank(x *exchange) *apiError {
	v, err := parseJSON(string(x.body))
	if err != nil {
		return bedrockInvalid("not JSON")
	}
	if e := extraneous(v, "queries", "sources", "rerankingConfiguration", "nextToken"); e != nil {
		return e
	}
	c := v.get("rerankingConfiguration").get("bedrockRerankingConfiguration")
	n, ok := c.get("numberOfResults").integer()
	sources := v.get("sources").arr
	if len(v.get("queries").arr) != 1 || len(sources) == 0 || !strings.HasPrefix(c.get("modelConfiguration").get("modelArn").s, "arn:aws:bedrock:") || !ok || n < 1 || n > int64(len(sources)) {
		return bedrockInvalid("The rerank request is invalid")
	}
	queryText := v.get("queries").arr[0].get("textQuery").get("text").s
	if e := steerBy(&x.st, queryText); e != nil {
		return e
	}
	query := strings.Fields(strings.ToLower(withoutDirectives(queryText)))
	b := []byte(`{"results":[`)
	for i, s := range sources[:n] {
		content := strings.ToLower(s.get("inlineDocumentSource").get("textDocument").get("text").s)
		hits := 0
		for _, w := range query {
			if strings.Contains(content, w) {
				hits++
			}
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"index":`+strconv.Itoa(i)+`,"relevanceScore":`+strconv.FormatFloat(float64(hits)/float64(len(query)+1), 'f', 3, 64)+`}`...)
	}
	return bedrockPlain(x, append(b, `]}`...), Usage{})
}

// checkInvoked reads a body in Anthropic's format, without its model and version.
func checkInvoked(x *exchange, v value) (*messageRequest, *apiError) {
	q := &messageRequest{job: job{model: x.model, st: &x.st, parallel: true}}
	own := []string{"anthropic_version", "anthropic_beta", "model"}
	v.obj = append(slices.DeleteFunc(slices.Clone(v.obj), func(m member) bool { return slices.Contains(own, m.name) }), member{"model", value{kind: text, s: x.model}})
	e := messageError(bodies()["message"].check(v, ""))
	if e == nil {
		e = q.read(v)
	}
	return q, bedrockError(e)
}

// claudeInvoked responds in Claude's format, complete or as chunks of a stream.
func claudeInvoked(x *exchange, v value, stream bool) *apiError {
	if v.get("anthropic_version").s != "bedrock-2023-05-31" {
		return bedrockInvalid("anthropic_version: Field required")
	}
	if v.get("model").kind != absent || v.get("stream").kind != absent {
		return bedrockInvalid("model: Extra inputs are not permitted")
	}
	q, e := checkInvoked(x, v)
	if e != nil {
		return e
	}
	id, done, e := x.begin("msg_bdrk_", q.seed, stream)
	if done {
		return e
	}
	m := &messageResponse{q: q, x: x, id: id}
	m.response = q.respond(0)
	m.usage = Usage{Input: q.prompt}
	m.usage.Output, m.usage.Reasoning = m.response.generated()
	if !stream {
		h := x.w.Header()
		h["X-Amzn-Bedrock-Input-Token-Count"] = []string{itoa(m.usage.Input)}
		h["X-Amzn-Bedrock-Output-Token-Count"] = []string{itoa(m.usage.Output + m.usage.Reasoning)}
		x.plain(m.id, m.body(), m.usage)
		return nil
	}
	s := x.startBinary(m.id, m.usage)
	s.invoke = true
	s.spend(m.usage.Output, m.usage.Reasoning)
	s.event("chunk", fill(`{"type":"message_start","message":$}`, m.body()))
	s.finish()
	s.event("chunk", fill(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":$,"outputTokenCount":$}}`, m.usage.Input, m.usage.Output+m.usage.Reasoning))
	return nil
}
