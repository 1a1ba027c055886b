package target

import "testing"

// The outermost model of a body counts only at paths where a provider reads it. Paths that name
// the model themselves, or that run what they name, are unknown.
func TestPathsWhoseBodiesNameTheModel(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/chat/completions": true, "/v1/chat/completions": true, "//v1/Chat/completions/": true, "/v1beta/openai/chat/completions": true,
		"/openai/deployments/m/chat/completions": true, "/v1/messages": true, "/v1/responses/compact": true, "/v2/embed": true,
		"/v1/projects/p/locations/l/endpoints/openapi/chat/completions": true, "/v1/batch/jobs": true, "/async-invoke": true,
		"/api/v3/images/generations": true, "/v1beta/cachedContents": true, "/inference/v1/embeddings": true,

		"/anything": false, "/": false,
		"/v1/predictions": false, "/v1/models/acme/big/predictions": false, "/v1/deployments/acme/big/predictions": false, // Replicate
		"/models/acme/big": false, "/hf-inference/models/acme/big/v1/chat/completions": false, // Hugging Face
		"/v1/inference/acme/big":                                    false,                                              // DeepInfra
		"/inference/v1/workflows/accounts/a/models/m/text_to_image": false,                                              // Fireworks
		"/endpoints/big/invocations":                                false, "/serving-endpoints/big/invocations": false, // SageMaker, Databricks
		"/v2/models/big/infer": false, "/v2/models/big/generate": false, // Triton
		"/fal-ai/flux/dev": false, "/v2beta/stable-image/generate/ultra": false, "/v1/generation/big/text-to-image": false, "/v1/big": false,
		"/agents/a/agentAliases/b/sessions/c/text": false, "/knowledgebases/k/retrieve": false, // Bedrock
		"/v1/projects/p/locations/l/reasoningEngines/1:query": false, "/v1beta/dynamic/x:generateContent": false,
		"/endpoints/big/chat/completions": false, "/v1/text-to-speech/voice": false, "/predict/v1/chat/completions": false,
	} {
		if got := readsBodyModel(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
