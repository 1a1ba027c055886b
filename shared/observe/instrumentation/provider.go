package instrumentation

import "strings"

// called are names of providers in the conventions and of senders, where they differ from
// the gateway's.
var called = map[string]string{
	// Conventions.
	"aws.bedrock": "bedrock", "azure.ai.openai": "azure-openai", "azure.ai.inference": "azure-ai", "gcp.gemini": "google", "gcp.vertex_ai": "vertex-ai", "mistral_ai": "mistral-ai", "x_ai": "x-ai", "moonshot_ai": "moonshot", "ibm.watsonx.ai": "watsonx",
	// Senders.
	"az.ai.openai": "azure-openai", "azure": "azure-openai", "azure_openai": "azure-openai", "azureopenai": "azure-openai", "az.ai.inference": "azure-ai", "azure_ai": "azure-ai", "aws_bedrock": "bedrock", "aws": "bedrock", "amazon_bedrock": "bedrock", "amazon-bedrock": "bedrock", "bedrock_converse": "bedrock",
	"bedrock.anthropic": "bedrock", "gcp.gen_ai": "google", "gemini": "google", "google_genai": "google", "google_generativeai": "google", "google-generativeai": "google", "google-generative-ai": "google", "google.generative-ai": "google", "google_ai": "google", "google-genai": "google",
	"vertex_ai": "vertex-ai", "vertexai": "vertex-ai", "google_vertexai": "vertex-ai", "google.vertex": "vertex-ai", "googlevertex": "vertex-ai", "vertex": "vertex-ai", "vertex.anthropic": "vertex-ai", "googlevertex.anthropic": "vertex-ai", "google-vertex": "vertex-ai", "anthropic_vertex": "vertex-ai",
	"xai": "x-ai", "grok": "x-ai", "mistral": "mistral-ai", "mistralai": "mistral-ai", "perplexity": "perplexity-ai", "together": "together-ai", "togetherai": "together-ai", "together_ai": "together-ai", "fireworks": "fireworks-ai", "fireworksai": "fireworks-ai", "fireworks_ai": "fireworks-ai",
	"moonshotai": "moonshot", "moonshot-ai": "moonshot", "kimi": "moonshot", "deep_seek": "deepseek", "deepinfra_ai": "deepinfra", "open_router": "openrouter",
}

// modelKinds are what the AI SDK appends to the name of a provider: the kind of model.
var modelKinds = map[string]bool{
	"chat": true, "responses": true, "completion": true, "completions": true, "messages": true, "embedding": true, "embeddings": true, "textembedding": true,
	"image": true, "speech": true, "transcription": true, "reranking": true, "realtime": true, "batch": true, "generative-ai": true, "text": true,
}

// providerCalled returns the id of the provider that the conventions or a sender call by
// this name; the name itself if it is unknown.
func providerCalled(name string) string {
	name = strings.ToLower(name)
	if known, ok := called[name]; ok {
		return known
	}
	if i := strings.LastIndexByte(name, '.'); i > 0 && modelKinds[name[i+1:]] {
		name = name[:i]
		if known, ok := called[name]; ok {
			return known
		}
	}
	return name
}
