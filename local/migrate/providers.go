package migrate

import (
	"net/url"
	"strings"

	"gateway/shared/provider"
)

// vendor specifies what the prefix of a model name means.
type vendor struct {
	id   string // of the catalog; openai with host for what only speaks its format
	keys string // variables that hold the key when the file names none
	host string // base URL, where the catalog has no row
	base string // variable of the base URL when the file names none

}

// vendors are the prefixes of model names, as LiteLLM and others write them.
var vendors = map[string]vendor{
	"openai": {id: "openai", keys: "OPENAI_API_KEY", base: "OPENAI_API_BASE"}, "text-completion-openai": {id: "openai", keys: "OPENAI_API_KEY"},
	"custom_openai": {id: "openai", keys: "OPENAI_API_KEY"}, "openai_like": {id: "openai", keys: "OPENAI_LIKE_API_KEY"}, "litellm_proxy": {id: "openai", keys: "LITELLM_PROXY_API_KEY", base: "LITELLM_PROXY_API_BASE"},
	"azure": {id: "azure-openai", keys: "AZURE_API_KEY", base: "AZURE_API_BASE"}, "azure_text": {id: "azure-openai", keys: "AZURE_API_KEY", base: "AZURE_API_BASE"},
	"azure_ai":  {id: "azure-ai", keys: "AZURE_AI_API_KEY", base: "AZURE_AI_API_BASE"},
	"anthropic": {id: "anthropic", keys: "ANTHROPIC_API_KEY"}, "anthropic_text": {id: "anthropic", keys: "ANTHROPIC_API_KEY"},
	"bedrock": {id: "bedrock"}, "bedrock_converse": {id: "bedrock"}, "sagemaker": {id: "sagemaker"}, "sagemaker_chat": {id: "sagemaker"},
	"vertex_ai": {id: "vertex-ai"}, "vertex_ai_beta": {id: "vertex-ai"}, "vertex": {id: "vertex-ai"}, "gemini": {id: "google", keys: "GEMINI_API_KEY"}, "palm": {id: "palm", keys: "PALM_API_KEY"},
	"cohere": {id: "cohere", keys: "COHERE_API_KEY"}, "cohere_chat": {id: "cohere", keys: "COHERE_API_KEY"}, "mistral": {id: "mistral-ai", keys: "MISTRAL_API_KEY"},
	"codestral": {id: "mistral-ai", keys: "CODESTRAL_API_KEY", host: "https://codestral.mistral.ai/v1"}, "xai": {id: "x-ai", keys: "XAI_API_KEY"}, "deepseek": {id: "deepseek", keys: "DEEPSEEK_API_KEY"},
	"moonshot": {id: "moonshot", keys: "MOONSHOT_API_KEY"}, "zai": {id: "z-ai", keys: "ZAI_API_KEY"}, "zhipu": {id: "zhipu", keys: "ZHIPU_API_KEY"}, "dashscope": {id: "dashscope", keys: "DASHSCOPE_API_KEY"},
	"minimax": {id: "minimax", keys: "MINIMAX_API_KEY"}, "perplexity": {id: "perplexity-ai", keys: "PERPLEXITYAI_API_KEY"}, "ai21": {id: "ai21", keys: "AI21_API_KEY"}, "ai21_chat": {id: "ai21", keys: "AI21_API_KEY"},
	"openrouter": {id: "openrouter", keys: "OPENROUTER_API_KEY"}, "groq": {id: "groq", keys: "GROQ_API_KEY"}, "cerebras": {id: "cerebras", keys: "CEREBRAS_API_KEY"},
	"together_ai": {id: "together-ai", keys: "TOGETHERAI_API_KEY"}, "fireworks_ai": {id: "fireworks-ai", keys: "FIREWORKS_AI_API_KEY"}, "deepinfra": {id: "deepinfra", keys: "DEEPINFRA_API_KEY"},
	"huggingface": {id: "huggingface", keys: "HUGGINGFACE_API_KEY"}, "cloudflare": {id: "workers-ai", keys: "CLOUDFLARE_API_KEY"}, "github": {id: "github", keys: "GITHUB_API_KEY"},
	"databricks": {id: "databricks", keys: "DATABRICKS_API_KEY", base: "DATABRICKS_API_BASE"}, "snowflake": {id: "cortex", keys: "SNOWFLAKE_JWT"}, "oci": {id: "oracle"},
	"predibase": {id: "predibase", keys: "PREDIBASE_API_KEY"}, "anyscale": {id: "anyscale", keys: "ANYSCALE_API_KEY"}, "novita": {id: "novita-ai", keys: "NOVITA_API_KEY"}, "nscale": {id: "nscale", keys: "NSCALE_API_KEY"},
	"hyperbolic": {id: "hyperbolic", keys: "HYPERBOLIC_API_KEY"}, "sambanova": {id: "sambanova", keys: "SAMBANOVA_API_KEY"}, "lambda_ai": {id: "lambda", keys: "LAMBDA_API_KEY"}, "nebius": {id: "nebius", keys: "NEBIUS_API_KEY"},
	"featherless_ai": {id: "featherless-ai", keys: "FEATHERLESS_AI_API_KEY"}, "ollama": {id: "ollama", base: "OLLAMA_API_BASE", host: "http://localhost:11434"}, "ollama_chat": {id: "ollama", base: "OLLAMA_API_BASE", host: "http://localhost:11434"},
	"hosted_vllm": {id: "vllm", keys: "HOSTED_VLLM_API_KEY", base: "HOSTED_VLLM_API_BASE"}, "vllm": {id: "vllm", base: "HOSTED_VLLM_API_BASE"}, "lm_studio": {id: "vllm", keys: "LM_STUDIO_API_KEY", base: "LM_STUDIO_API_BASE"},
	"llamafile": {id: "vllm", host: "http://127.0.0.1:8080/v1"}, "xinference": {id: "vllm", keys: "XINFERENCE_API_KEY", base: "XINFERENCE_API_BASE"}, "docker_model_runner": {id: "vllm", host: "http://localhost:22088/engines/llama.cpp/v1"}, "infinity": {id: "vllm", base: "INFINITY_API_BASE"},
	"lemonade": {id: "vllm", host: "http://localhost:8000/api/v1"}, "triton": {id: "triton"}, "jina_ai": {id: "jina", keys: "JINA_AI_API_KEY"}, "voyage": {id: "voyage", keys: "VOYAGE_API_KEY"}, "nomic": {id: "nomic", keys: "NOMIC_API_KEY"},
	"stability": {id: "stability-ai", keys: "STABILITY_API_KEY"}, "recraft": {id: "recraft-ai", keys: "RECRAFT_API_KEY"}, "fal_ai": {id: "fal-ai", keys: "FAL_AI_API_KEY"}, "deepgram": {id: "deepgram", keys: "DEEPGRAM_API_KEY"}, "replicate": {id: "replicate", keys: "REPLICATE_API_KEY"},
	"nvidia_nim": {id: "openai", keys: "NVIDIA_NIM_API_KEY", base: "NVIDIA_NIM_API_BASE", host: "https://integrate.api.nvidia.com/v1"}, "meta_llama": {id: "openai", keys: "LLAMA_API_KEY", host: "https://api.llama.com/compat/v1"},
	"vercel_ai_gateway": {id: "openai", keys: "VERCEL_AI_GATEWAY_API_KEY", host: "https://ai-gateway.vercel.sh/v1"}, "aiml": {id: "openai", keys: "AIML_API_KEY", host: "https://api.aimlapi.com/v1"},
	"friendliai": {id: "openai", keys: "FRIENDLI_TOKEN", host: "https://api.friendli.ai/serverless/v1"}, "volcengine": {id: "openai", keys: "VOLCENGINE_API_KEY", host: "https://ark.cn-beijing.volces.com/api/v3"}, "morph": {id: "openai", keys: "MORPH_API_KEY", host: "https://api.morphllm.com/v1"},
	"inception": {id: "openai", keys: "INCEPTION_API_KEY", host: "https://api.inceptionlabs.ai/v1"}, "wandb": {id: "openai", keys: "WANDB_API_KEY", host: "https://api.inference.wandb.ai/v1"}, "baseten": {id: "openai", keys: "BASETEN_API_KEY", host: "https://inference.baseten.co/v1"},
	"cometapi": {id: "cometapi", keys: "COMETAPI_KEY"}, "siliconflow": {id: "siliconflow", keys: "SILICONFLOW_API_KEY"}, "ovhcloud": {id: "ovhcloud", keys: "OVHCLOUD_API_KEY"}, "v0": {id: "openai", keys: "V0_API_KEY", host: "https://api.v0.dev/v1"}, "heroku": {id: "openai", keys: "HEROKU_API_KEY", base: "HEROKU_API_BASE"},
}

// beginnings maps prefixes of model names without a provider to providers.
var beginnings = []struct{ begin, prefix string }{
	{"gpt-", "openai"}, {"chatgpt-", "openai"}, {"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"}, {"ft:", "openai"}, {"text-embedding-3", "openai"}, {"text-embedding-ada", "openai"}, {"dall-e", "openai"}, {"whisper-", "openai"}, {"tts-", "openai"}, {"omni-moderation", "openai"}, {"codex-", "openai"}, {"sora-", "openai"},
	{"claude-", "anthropic"}, {"gemini-", "vertex_ai"}, {"text-embedding-0", "vertex_ai"}, {"command", "cohere"}, {"embed-", "cohere"}, {"rerank-", "cohere"}, {"jamba-", "ai21"}, {"mistral-", "mistral"},
	{"anthropic.", "bedrock"}, {"us.anthropic.", "bedrock"}, {"eu.anthropic.", "bedrock"}, {"amazon.", "bedrock"}, {"us.amazon.", "bedrock"}, {"meta.", "bedrock"}, {"cohere.", "bedrock"}, {"mistral.", "bedrock"},
}

// vendorOf splits a model name into the vendor and the vendor's name for the model. explicit
// is the vendor that the source names beside the model; hosted reports whether the source
// gives a base URL.
func vendorOf(model, explicit string, hosted bool) (v vendor, prefix, name string, ok bool) {
	prefix, name, split := strings.Cut(model, "/")
	if explicit != "" {
		if !split || prefix != explicit {
			name = model
		}
		prefix, split = explicit, true
	}
	if split {
		if v, ok = vendors[prefix]; ok {
			return v, prefix, name, true
		}
		if p, known := provider.ByID(strings.ReplaceAll(prefix, "_", "-")); known {
			return vendor{id: p.ID, keys: strings.ToUpper(prefix) + "_API_KEY"}, prefix, name, true
		}
	}
	for _, b := range beginnings {
		if explicit == "" && strings.HasPrefix(model, b.begin) && !hosted {
			return vendors[b.prefix], b.prefix, model, true
		}
	}
	if hosted { // a host that speaks the format of OpenAI
		return vendor{id: "openai"}, "openai", model, true
	}
	return vendor{}, prefix, model, false
}

// bedrockRoutes occur between the prefix and the model of a Bedrock name.
var bedrockRoutes = []string{"converse/", "converse_like/", "invoke/", "agent/", "async_invoke/"}

// azureResource returns the name of an Azure resource from its address.
func azureResource(base string) (name string, standard bool) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", false
	}
	name, rest, _ := strings.Cut(u.Hostname(), ".")
	return name, rest == "openai.azure.com"
}
