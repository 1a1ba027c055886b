package provider

import (
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// limit fills in what model is known not to support, from the table of its provider. The
// table has only what makers and hosts say in public. A model without a row is never
// rejected anything, and neither is anything that a row does not mention. Rows are tried
// in order and the first that fits counts. Azure has none, because owners name their
// deployments.
func (p *Provider) limit(t *chat.Traits, model string) {
	rules := capabilities[p.ID]
	switch p.ID {
	case "bedrock":
		model = bedrockID(model)
	case "vertex-ai":
		_, model = vertexModel(model)
		if i := strings.Index(model, "claude-"); i >= 0 {
			rules, model = capabilities["anthropic"], model[i:]
		}
	case "google":
		_, model = vertexModel(strings.TrimPrefix(model, "models/"))
	case "claude-platform-aws":
		rules = capabilities["anthropic"]
	}
	for i := range rules {
		if rules[i].fits(model) {
			rules[i].apply(t, lackByName(model))
			break
		}
	}
	if openHosts[p.ID] {
		if i := strings.LastIndexByte(model, '/'); i >= 0 {
			model = model[i+1:]
		}
		for i := range openModels {
			if openModels[i].fits(model) {
				openModels[i].apply(t, lackByName(model))
				break
			}
		}
	}
	t.NoLogprobs = t.NoLogprobs || p.Quirks.drops("logprobs")
}

// rule lists what the models with matching names cannot do. A name matches a prefix of
// complete words; one that ends in $ matches the complete name. Case does not matter.
type rule struct {
	names []string
	lacks lack
}

// lack is a set of limits.
type lack uint16

const (
	tools lack = 1 << iota
	images
	documents
	audio
	streams
	logprobs
	several
	jsonObject
	jsonSchema
	thinking

	media    = images | documents | audio
	nothing  = lack(0)
	textOnly = media | tools
)

func (r *rule) fits(model string) bool {
	for _, name := range r.names {
		whole, exact := strings.CutSuffix(name, "$")
		if len(model) >= len(whole) && strings.EqualFold(model[:len(whole)], whole) && (!exact || len(model) == len(whole)) && endsWord(whole, model) {
			return true
		}
	}
	return false
}

// endsWord reports whether name, with which model begins, ends at the end of a word there:
// o3 is not a beginning of o365.
func endsWord(name, model string) bool {
	if len(name) == len(model) || name == "" || !alphanumeric(name[len(name)-1]) {
		return true
	}
	return !alphanumeric(model[len(name)])
}

// apply removes what the rule lacks, except what the model's name states.
func (r *rule) apply(t *chat.Traits, has lack) {
	l := r.lacks &^ has
	t.NoTools = t.NoTools || l&tools != 0
	t.NoImages = t.NoImages || l&images != 0
	t.NoDocuments = t.NoDocuments || l&documents != 0
	t.NoAudio = t.NoAudio || l&audio != 0
	t.NoStream = t.NoStream || l&streams != 0
	t.NoLogprobs = t.NoLogprobs || l&logprobs != 0
	t.NoSeveral = t.NoSeveral || l&several != 0
	t.NoJSON = t.NoJSON || l&jsonObject != 0
	t.NoThinking = t.NoThinking || l&thinking != 0
	if l&jsonSchema != 0 {
		t.Schema = chat.SchemaNone
	}
}

// senses are words in names that indicate inputs of a model: a variant for images or
// audio differs from other models with the same prefix.
var senses = []struct {
	word string
	has  lack
}{
	{"vl", images | documents}, {"vision", images | documents}, {"image", images}, {"omni", images | audio},
	{"multimodal", media}, {"voice", audio}, {"audio", audio}, {"speech", audio},
}

// lackByName returns the capabilities that a model's name states.
func lackByName(model string) (has lack) {
	for len(model) > 0 {
		word, rest := model, ""
		if i := strings.IndexAny(model, "-_./: "); i >= 0 {
			word, rest = model[:i], model[i+1:]
		}
		for i := range senses {
			if strings.EqualFold(word, senses[i].word) {
				has |= senses[i].has
			}
		}
		model = rest
	}
	return has
}

// ownHost reports whether the target is a custom host, with arbitrary models and limits.
// A host below the provider's domain, such as a private endpoint, does not count, and
// neither does an Azure resource.
func (t *Target) ownHost() bool {
	host := t.customHost()
	if host == "" {
		host = t.Field("huggingface_base_url")
	}
	return host != "" && (t.Provider.Base == "" || domain(host) != domain(t.Provider.Base))
}

// domain is the last two labels of the host name of a URL.
func domain(rawURL string) string {
	_, rest, _ := strings.Cut(rawURL, "://")
	if i := strings.IndexAny(rest, "/:"); i >= 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		if j := strings.LastIndexByte(rest[:i], '.'); j >= 0 {
			return rest[j+1:]
		}
	}
	return rest
}

// permit allows again what the tables forbid for a model, for a caller's own host. What the
// wire has no place for stays forbidden.
func (t *Target) permit(traits *chat.Traits, model string) {
	switch t.DialectOf(Chat, model) {
	case "reka", "palm", "bytez", BedrockInvoke:
		return
	case OpenAIChat:
		traits.Sampling, traits.Thinking, traits.NoEffort = chat.SamplingFree, chat.ThinksEither, false
	}
	traits.PromptCacheKey, traits.Breakpoints = false, false // not known to be accepted
	traits.Limits = chat.Limits{NoLogprobs: t.Provider.Quirks.drops("logprobs")}
	if traits.Schema == chat.SchemaNone {
		traits.Schema = chat.SchemaNative
	}
}

func (q *Quirks) drops(member string) bool { return slices.Contains(q.Drop, member) }

// all is the name that fits every model.
const all = ""

// capabilities are the rules by provider.
var capabilities = map[string][]rule{
	"openai": {
		{[]string{"gpt-3.5-turbo-0301", "gpt-4-0314", "gpt-4-32k-0314"}, media | tools | jsonSchema | jsonObject | thinking},
		{[]string{"gpt-3.5-turbo", "gpt-4$", "gpt-4-0613", "gpt-4-32k", "gpt-4-1106-preview", "gpt-4-0125-preview"}, media | jsonSchema | thinking},
		{[]string{"gpt-4-turbo$", "gpt-4-turbo-2024", "gpt-4-vision"}, audio | jsonSchema | thinking},
		{[]string{"gpt-4o-audio", "gpt-4o-mini-audio", "gpt-audio"}, images | jsonSchema | thinking},
		{[]string{"gpt-4o-search", "gpt-4o-mini-search"}, tools | thinking},
		{[]string{"gpt-4o-2024-05-13"}, audio | jsonSchema | thinking},
		{[]string{"chatgpt-4o"}, tools | audio | jsonSchema | thinking},
		{[]string{"gpt-4o", "gpt-4.1"}, audio | thinking},
		{[]string{"o1-mini", "o1-preview"}, media | tools | jsonSchema | jsonObject | logprobs},
		{[]string{"o3-mini"}, images | audio | logprobs},
		{[]string{"o1", "o3", "o4"}, audio | logprobs},
	},
	"anthropic": {
		{[]string{"claude-1", "claude-v1", "claude-2", "claude-v2", "claude-instant"}, textOnly | jsonSchema | thinking},
		{[]string{"claude-3-7"}, audio},
		{[]string{"claude-3-"}, audio | thinking},
		{[]string{"claude-"}, audio},
	},
	"google": {
		{[]string{"gemini-2.0-flash-thinking", "gemini-2.0-flash-lite-preview-thinking"}, nothing},
		{[]string{"gemini-1.", "gemini-2.0"}, thinking},
		{[]string{"gemini-2.5-flash-image"}, tools | thinking},
		{[]string{"gemini-2.5-flash-preview-tts", "gemini-2.5-pro-preview-tts"}, textOnly | thinking},
		{[]string{"gemma-3-1b", "gemma-2"}, textOnly},
	},
	"vertex-ai": {
		{[]string{"gemini-1.", "gemini-2.0"}, thinking},
		{[]string{"gemini-2.5-flash-image"}, tools | thinking},
	},
	"bedrock": {
		{[]string{"ai21.j2-"}, textOnly | several | jsonObject | jsonSchema | thinking},
		{[]string{"ai21.jamba-instruct"}, textOnly | thinking},
		{[]string{"ai21.jamba-1-5"}, images | audio | thinking},
		{[]string{"amazon.nova-micro"}, media | thinking},
		{[]string{"amazon.titan-text", "amazon.titan-tg1"}, tools | images | audio | thinking},
		{[]string{"anthropic.claude-v2", "anthropic.claude-v1", "anthropic.claude-instant"}, tools | images | audio | thinking},
		{[]string{"cohere.command-text", "cohere.command-light-text"}, textOnly | jsonObject | jsonSchema | thinking},
		{[]string{"cohere.command-r"}, images | audio | thinking},
		{[]string{"deepseek.r1"}, tools | images | audio},
		{[]string{"meta.llama2", "meta.llama3-8b", "meta.llama3-70b"}, tools | images | audio | thinking},
		{[]string{"meta.llama3-1-", "meta.llama3-2-1b", "meta.llama3-2-3b", "meta.llama3-3-"}, images | audio | thinking},
		{[]string{"mistral.mistral-7b", "mistral.mixtral"}, tools | images | audio | thinking},
		{[]string{"mistral.mistral-large-2402", "mistral.mistral-large-2407", "mistral.mistral-small-2402"}, images | audio | thinking},
	},
	"cohere": {
		{[]string{"command-a-vision", "c4ai-aya-vision"}, audio | thinking},
		{[]string{"command-a-reasoning"}, images | audio},
		{[]string{"command-r", "command-r7b", "command-a-03", "command-a-translate", "command-light", "command-nightly", "c4ai-aya-expanse"}, images | audio | thinking},
	},
	"deepseek": {
		{[]string{"deepseek-reasoner"}, media | logprobs},
		{[]string{"deepseek-chat"}, media},
	},
	"groq": {
		{[]string{"llama-3.1-", "llama-3.3-", "llama3-", "openai/gpt-oss", "gemma2-", "qwen/qwen3-32b", "qwen-qwq", "deepseek-r1-", "moonshotai/kimi-k2-instruct", "allam-", "mixtral-"}, media | several},
		{[]string{all}, several},
	},
	"cerebras": {
		{[]string{"llama3.1-", "llama-3.3-", "qwen-3-", "gpt-oss-", "zai-glm-4.6", "zai-glm-4.7"}, media},
	},
	"mistral-ai": {
		{[]string{"open-mistral-7b", "mistral-tiny", "open-codestral-mamba", "codestral-mamba"}, textOnly},
		{[]string{"open-mixtral-", "open-mistral-nemo", "codestral-", "devstral-small-2505", "ministral-3b-2410", "ministral-8b-2410", "mistral-large-2402", "mistral-large-2407", "mistral-large-2411", "mistral-small-2402", "mistral-small-2409"}, images | audio},
	},
	"moonshot": {
		{[]string{"moonshot-v1-8k$", "moonshot-v1-32k$", "moonshot-v1-128k$", "moonshot-v1-auto$", "kimi-k2-"}, images | audio},
	},
	"perplexity-ai": {
		{[]string{"sonar-deep-research"}, tools | images | audio},
		{[]string{"sonar"}, tools | audio},
	},
	"x-ai": {
		{[]string{"grok-3", "grok-code-fast", "grok-2-1212", "grok-2$", "grok-2-latest$", "grok-beta"}, images | audio},
	},
	"zhipu": glm,
	"z-ai":  glm,

	"reka-ai": {{[]string{all}, tools}},
	"palm":    {{[]string{all}, textOnly | thinking}},
	"bytez":   {{[]string{all}, tools}},
}

var glm = []rule{
	{[]string{"glm-4$", "glm-4-", "glm-4.5$", "glm-4.5-", "glm-4.6$", "glm-4.7$", "glm-4.7-flash", "glm-4.7-flashx"}, images | audio},
}

// openHosts serve open models under the names of their makers.
var openHosts = map[string]bool{
	"together-ai": true, "fireworks-ai": true, "deepinfra": true, "huggingface": true, "novita-ai": true, "nebius": true, "hyperbolic": true,
	"sambanova": true, "inference-net": true, "nscale": true, "ovhcloud": true, "siliconflow": true,
}

// openModels are open-weight models that only read text, on any host.
var openModels = []rule{
	{[]string{"llama-3.1-", "llama-3.3-", "llama3.1", "llama3.3", "meta-llama-3-", "meta-llama-3.1-", "llama-3.2-1b", "llama-3.2-3b",
		"gpt-oss", "mixtral-8x7b", "mixtral-8x22b", "mistral-7b-", "deepseek-r1", "deepseek-v3", "qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-14b",
		"qwen3-32b", "qwen3-30b-a3b", "qwen3-235b-a22b", "qwen3-coder", "qwen3-next", "qwq-32b", "kimi-k2-instruct", "kimi-k2-thinking",
		"gemma-2-", "phi-4$", "phi-4-mini-instruct", "glm-4.5$", "glm-4.5-air", "glm-4.6$"}, images | audio},
}

// PassthroughURL is the address of a request that is forwarded as it is: the provider's
// base URL, then escapedPath, which is the path after the gateway's own base, unchanged
// on the wire. Nothing is cleaned or escaped again. Parse the result with ExactURL.
func (t *Target) PassthroughURL(escapedPath, rawQuery string) (string, error) {
	if !strings.HasPrefix(escapedPath, "/") {
		escapedPath = "/" + escapedPath
	}
	template := t.Provider.Base
	switch t.Provider.ID {
	case "azure-openai":
		if full, ok, err := azureFullHost((t), escapedPath); ok || err != nil {
			return exactQuery(full, rawQuery), err
		}
	case "meshy":
		if strings.Contains(escapedPath, "text-to-3d") {
			template = "https://api.meshy.ai/openapi/v2"
		}
	case "huggingface":
		if t.Field("huggingface_base_url") != "" {
			template = "{huggingface_base_url}"
		}
	}
	base, err := base(t, template)
	if err != nil {
		return "", err
	}
	if t.Provider.ID == "anthropic" && strings.HasSuffix(base, "/v1") && strings.HasPrefix(escapedPath, "/v1/") {
		escapedPath = escapedPath[len("/v1"):] // clients add the version, which the base has already
	}
	return exactQuery(base+escapedPath, rawQuery), nil
}

func exactQuery(rawURL, rawQuery string) string {
	if rawQuery == "" {
		return rawURL
	}
	return rawURL + "?" + rawQuery
}

// azureFullHost parses a path that names a complete Azure host, such as
// /my-resource.openai.azure.com/openai/deployments. A stored credential is only sent to
// its own resource.
func azureFullHost(t *Target, path string) (string, bool, error) {
	const domain = ".openai.azure.com"
	if !strings.Contains(path, domain) {
		return "", false, nil
	}
	rest := strings.TrimLeft(path, "/")
	if cut, ok := strings.CutPrefix(rest, "https:"); ok {
		rest = strings.TrimLeft(cut, "/")
	}
	host, tail, _ := strings.Cut(rest, "/")
	label, ok := strings.CutSuffix(strings.ToLower(host), domain)
	if !ok {
		return "", false, nil // the host is named further on: an ordinary path
	}
	if !hostLabel(label, false) {
		return "", true, fault.Invalid("azure_resource_name", "The host in the path must be <resource>%s", domain)
	}
	if own := strings.ToLower(t.Field("azure_resource_name")); (t.Saved || !t.CallerKey) && label != own {
		return "", true, fault.New(fault.BlockedHost, "azure_resource_name", "A stored credential is only sent to its own Azure resource")
	}
	return "https://" + label + domain + "/" + tail, true, nil
}
