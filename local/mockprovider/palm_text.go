package mockprovider

import "strings"

// palmModel is the model in the path, before the method.
func palmModel(x *exchange) {
	name := x.path[strings.LastIndexByte(x.path, '/')+1:]
	x.model, _, _ = strings.Cut(name, ":")
}

// palmText serves :generateText. It does not report usage.
func palmText(x *exchange) *apiError {
	v, e := strictBody(x, "prompt! safetySettings stopSequences temperature candidateCount maxOutputTokens topP topK")
	if e != nil {
		return e
	}
	palmModel(x)
	prompt := v.get("prompt").get("text")
	if prompt.kind != text || prompt.s == "" || len(v.get("prompt").obj) != 1 {
		return wireBad("prompt.text must be a non-empty string")
	}
	for _, b := range []struct {
		name      string
		low, high float64
	}{{"temperature", 0, 1}, {"candidateCount", 1, 8}, {"topP", 0, 1}, {"maxOutputTokens", 1, 1 << 20}} {
		if within(v, b.name, b.low, b.high) != nil {
			return wireBad("%s is out of its range", b.name)
		}
	}
	if len(v.get("stopSequences").arr) > 5 {
		return wireBad("stopSequences must have at most 5 elements")
	}
	a, u, done, e := says(x, prompt.s, prompt.s, v.get("maxOutputTokens"))
	if done {
		return e
	}
	if x.st.refuse {
		x.plain("mock", []byte(`{"filters":[{"reason":"SAFETY"}],"safetyFeedback":[]}`), u)
		return nil
	}
	n, _ := count(v, "candidateCount", 8)
	x.plain("mock", []byte(`{"candidates":`+repeated(`{"output":`+spoken(&a)+`,"safetyRatings":[{"category":"HARM_CATEGORY_TOXICITY","probability":"NEGLIGIBLE"}]}`, n)+`}`), u)
	return nil
}

// palmEmbed serves :embedText: one text, one vector.
func palmEmbed(x *exchange) *apiError {
	v, e := strictBody(x, "text! model")
	if e != nil {
		return e
	}
	palmModel(x)
	words := v.get("text")
	if words.kind != text || words.s == "" {
		return wireBad("text must be a non-empty string")
	}
	if e := steered(x, []string{words.s}); e != nil {
		return e
	}
	list, tokens := vectors([]string{words.s}, `{"value":$v}`, false)
	return embedded(x, []byte(`{"embedding":`+list+`}`), tokens)
}
