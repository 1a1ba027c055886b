package relay_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/testkit/relaytest"
)

const (
	vertex = `{"provider":"vertex-ai","vertex_auth_type":"basic","api_key":"t","vertex_region":"us-central1","vertex_project_id":"proj"}`
	aws    = `{"provider":"bedrock","aws_access_key_id":"AKIAEXAMPLE","aws_secret_access_key":"very-secret","aws_region":"us-east-1"`

	geminiReply  = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":10,"totalTokenCount":110},"modelVersion":"gemini-2.5-flash"}`
	converseBody = `{"output":{"message":{"role":"assistant","content":[{"text":"Hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":10,"totalTokens":110},"metrics":{"latencyMs":1}}`
	converseAsks = `{"messages":[{"role":"user","content":[{"text":"Hi"}]}]}`
	geminiAsks   = `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}`
	bedrockOlder = "anthropic.claude-sonnet-4-5-20250929-v1:0"
	profile      = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/team"
)

// asks is a chat request or, with a bound, one of Messages.
func asks(model, more string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content":"Hi"}]` + more + `}`
}

// TestProvidersOfTheirOwn requires the address, the body and the response of conversations and
// operations at providers whose models decide the path or the format.
func TestProvidersOfTheirOwn(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	oracle := `{"provider":"oracle","oracle_tenancy":"ocid1.tenancy.oc1..t","oracle_user":"ocid1.user.oc1..u","oracle_fingerprint":"20:3b:97:13:55:1c:5b:0d:d3:37:d8:50:4e:c5:3a:34","oracle_region":"us-chicago-1","oracle_compartment_id":"ocid1.compartment.oc1..c","oracle_private_key":` + string(block) + `}`
	const publishers = "https://us-central1-aiplatform.googleapis.com/v1/projects/proj/locations/us-central1/publishers/"
	messagesStream := sse(messageStream(`"input_tokens":100,"output_tokens":1`, `"output_tokens":10`)...)
	chatStream := sse(piece("Hello", ""), lastChunk+shortly+"}", ended)
	for _, x := range []exchange{
		{"Claude on Vertex by chat", chatPath, asks("anthropic.claude-sonnet-4-5", ""), on(vertex), []relaytest.Reply{ok(claudeReply)}, 200, `Hello`, publishers + "anthropic/models/claude-sonnet-4-5:rawPredict & Bearer t", "200"},
		{"a stream of it", chatPath, asks("anthropic.claude-sonnet-4-5", `,"stream":true`), on(vertex), []relaytest.Reply{ok(messagesStream)}, 200, "[DONE]", publishers + "anthropic/models/claude-sonnet-4-5:streamRawPredict", "200"},
		{"Claude on Vertex by Messages", messagesPath, asks("anthropic.claude-sonnet-4-5", `,"max_tokens":50`), on(vertex), []relaytest.Reply{ok(claudeReply)}, 200, `"type":"message"`, publishers + `anthropic/models/claude-sonnet-4-5:rawPredict & "anthropic_version":"vertex-2023-10-16"`, "200"},
		{"a stream by Messages", messagesPath, asks("anthropic.claude-sonnet-4-5", `,"max_tokens":50,"stream":true`), on(vertex), []relaytest.Reply{ok(messagesStream)}, 200, "message_stop", ":streamRawPredict", "200"},
		{"Gemini on Vertex by Messages", messagesPath, asks("gemini-2.5-flash", `,"max_tokens":50`), on(vertex), []relaytest.Reply{ok(geminiReply)}, 200, `"type":"message"`, publishers + "google/models/gemini-2.5-flash:generateContent", "200"},
		{"Mistral on Vertex", chatPath, asks("mistralai.mistral-medium-3", ""), on(vertex), []relaytest.Reply{ok(reply)}, 200, `"choices"`, publishers + "mistralai/models/mistral-medium-3:rawPredict", "200"},
		{"Llama on Vertex", chatPath, asks("meta.llama-4-scout", `,"stream":true`), on(vertex), []relaytest.Reply{ok(chatStream)}, 200, "[DONE]", "/v1beta1/projects/proj/locations/us-central1/endpoints/openapi/chat/completions", "200"},
		{"an endpoint on Vertex", chatPath, asks("endpoints.12345", ""), on(vertex), []relaytest.Reply{ok(reply)}, 200, `"choices"`, "/v1/projects/proj/locations/us-central1/endpoints/12345/chat/completions", "200"},
		{"vectors on Vertex", "/v1/embeddings", `{"model":"text-embedding-005","input":["one","two"],"dimensions":64}`, on(vertex), []relaytest.Reply{ok(`{"predictions":[{"embeddings":{"values":[0.5],"statistics":{"token_count":1}}},{"embeddings":{"values":[0.5],"statistics":{"token_count":1}}}]}`)}, 200, `"prompt_tokens":2`, publishers + `google/models/text-embedding-005:predict & "outputDimensionality":64`, "200"},
		{"vectors at Google", "/v1/embeddings", `{"model":"gemini-embedding-001","input":["one","two"]}`, on(`{"provider":"google","api_key":"k"}`), []relaytest.Reply{ok(`{"embeddings":[{"values":[0.5]},{"values":[0.5]}]}`)}, 200, `"index":1`, "/v1beta/models/gemini-embedding-001:batchEmbedContents & X-Goog-Api-Key: k", "200"},
		{"images on Vertex", "/v1/images/generations", `{"model":"imagen-4.0-generate-001","prompt":"a cat","n":2,"size":"1024x1024"}`, on(vertex), []relaytest.Reply{ok(`{"predictions":[{"bytesBase64Encoded":"aGk=","mimeType":"image/png"},{"bytesBase64Encoded":"aGk=","mimeType":"image/png"}]}`)}, 200, `"b64_json"`, publishers + "google/models/imagen-4.0-generate-001:predict", "200"},
		{"an inference profile", chatPath, asks(profile, ""), on(aws + "}"), []relaytest.Reply{ok(`{"models":[{"modelArn":"arn:aws:bedrock:us-east-1::foundation-model/` + bedrockOlder + `"}]}`), ok(converseBody)}, 200, `"provider":"bedrock" & Hello`, "application-inference-profile%2Fteam/converse", "200"},
		{"a foundation model by its ARN", chatPath, asks("arn:aws:bedrock:us-east-1::foundation-model/"+bedrockOlder, ""), on(aws + "}"), []relaytest.Reply{ok(converseBody)}, 200, `Hello`, "/converse", "200"},
		{"Claude by InvokeModel and Converse, with schemas", chatPath, asks(bedrockOlder, `,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}`), on(aws + "}"), []relaytest.Reply{ok(strings.Replace(converseBody, `"text":"Hello"`, `"text":"{\"n\":1}"`, 1))}, 200, `{\"n\":1}`, "/converse", "200"},
		{"an image of the web on Bedrock", chatPath, `{"model":"` + bedrockOlder + `","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"ftp://x.example/a.png"}}]}]}`, on(aws + "}"), nil, 400, `messages[0].content[0]`, "", ""},
		{"a caller who has the gateway assume a role", chatPath, asks(bedrockOlder, ""), []string{"X-Gateway-Provider", "bedrock", "X-Gateway-Aws-Auth-Type", "assumedRole", "X-Gateway-Aws-Role-Arn", "arn:aws:iam::123456789012:role/x"}, nil, 400, "", "", ""},
		{"the caller's own keys", chatPath, asks(bedrockOlder, ""), []string{"X-Gateway-Provider", "bedrock", "X-Gateway-Aws-Access-Key-Id", "AKIDOWN", "X-Gateway-Aws-Secret-Access-Key", "s", "X-Gateway-Aws-Region", "eu-west-3"}, []relaytest.Reply{ok(converseBody)}, 200, "Hello", "bedrock-runtime.eu-west-3. & Credential=AKIDOWN/", "200"},
		{"Command by InvokeModel", chatPath, `{"model":"` + bedrockCommand + `","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"Hi"}]}`, on(aws + "}"), []relaytest.Reply{ok(`{"generations":[{"text":"Hello","finish_reason":"COMPLETE"}],"prompt":"x"}`)}, 200, `"content":"Hello"`, `/invoke & "prompt":"System: Be brief.\nUser: a\nAssistant: b\nUser: Hi\nAssistant:"`, "200"},
		{"Command by responses", "/v1/responses", `{"model":"` + bedrockCommand + `","input":"Hi"}`, on(aws + "}"), []relaytest.Reply{ok(`{"generations":[{"text":"Hello","finish_reason":"COMPLETE"}],"prompt":"x"}`)}, 200, `"status":"completed"`, `/invoke`, "200"},
		{"several vectors on Titan", "/v1/embeddings", `{"model":"amazon.titan-embed-text-v2:0","input":["a","b"]}`, on(aws + "}"), nil, 400, "input", "", ""},
		{"Generate of Cohere", "/v1/completions", `{"model":"command","prompt":"Hi","max_tokens":9}`, on(`{"provider":"cohere","api_key":"k"}`), []relaytest.Reply{ok(`{"id":"g","generations":[{"id":"x","text":"Hello","finish_reason":"COMPLETE"}],"meta":{"billed_units":{"input_tokens":100,"output_tokens":10}}}`)}, 200, `Hello & "text_completion"`, "https://api.cohere.ai/v1/generate", "200"},
		{"completions of a model of Cohere that chats", "/v1/completions", `{"model":"command-r","prompt":"Hi","max_tokens":9}`, on(`{"provider":"cohere","api_key":"k"}`), []relaytest.Reply{ok(`{"id":"c","message":{"role":"assistant","content":[{"type":"text","text":"Hello"}]},"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":100,"output_tokens":10}}}`)}, 200, `Hello & "text_completion"`, "https://api.cohere.ai/v2/chat", "200"},
		{"a temperature that Cohere lacks", chatPath, asks("command-r", `,"temperature":1.5`), on(`{"provider":"cohere","api_key":"k"}`), nil, 400, "temperature must be between 0 and 1", "", ""},
		{"a query that is no text", "/v1/rerank", `{"model":"rerank-v3.5","query":{"image":"x"},"documents":["a"]}`, on(`{"provider":"cohere","api_key":"k"}`), nil, 400, "query", "", ""},
		{"a document at an FTP server", "/v1/ocr", `{"model":"mistral-ocr-latest","document":{"type":"document_url","document_url":"ftp://x"}}`, on(`{"provider":"mistral-ai","api_key":"k"}`), nil, 400, "document", "", ""},
		{"a document", "/v1/ocr", `{"model":"mistral-ocr-latest","document":{"type":"document_url","document_url":"https://example.com/a.pdf"}}`, on(`{"provider":"mistral-ai","api_key":"k"}`), []relaytest.Reply{ok(`{"pages":[{"index":0,"markdown":"# One"},{"index":1,"markdown":"# Two"}],"model":"mistral-ocr-latest","usage_info":{"pages_processed":2}}`)}, 200, "# Two", "https://api.mistral.ai/v1/ocr", "200"},
		{"Oracle", chatPath, asks("meta.llama-3.3-70b-instruct", ""), on(oracle), []relaytest.Reply{ok(`{"modelId":"meta.llama-3.3-70b-instruct","chatResponse":{"apiFormat":"GENERIC","choices":[{"index":0,"message":{"role":"ASSISTANT","content":[{"type":"TEXT","text":"Hello"}]},"finishReason":"stop"}],"usage":{"promptTokens":100,"completionTokens":10,"totalTokens":110}}}`)}, 200, `Hello & "finish_reason":"stop"`, `us-chicago-1 & "compartmentId":"ocid1.compartment.oc1..c" & Authorization: Signature & !PRIVATE KEY`, "200"},
		{"a schema at Oracle", chatPath, asks("meta.llama-3.3-70b-instruct", `,"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}`), on(oracle), []relaytest.Reply{ok(`{"modelId":"meta.llama-3.3-70b-instruct","chatResponse":{"apiFormat":"GENERIC","choices":[{"index":0,"message":{"role":"ASSISTANT","content":[{"type":"TEXT","text":"{\"n\":1}"}]},"finishReason":"stop"}],"usage":{"promptTokens":100,"completionTokens":10,"totalTokens":110}}}`)}, 200, `{\"n\":1}`, `"responseFormat":{"type":"JSON_SCHEMA"`, "200"},
		{"an error of Oracle", chatPath, asks("meta.llama-3.3-70b-instruct", ""), on(oracle), []relaytest.Reply{{Status: 429, Header: http.Header{"Retry-After": {"2"}}, Body: `{"code":"TooManyRequests","message":"Too many requests"}`}}, 429, "Retry-After: 2 & Too many requests", "", "429"},
		{"a forced tool at Oracle", chatPath, asks("cohere.command-r-plus-08-2024", `,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required"`), on(oracle), nil, 400, `"param":"tool_choice"`, "", ""},
		{"a temperature that it lacks", chatPath, asks("cohere.command-r-plus-08-2024", `,"temperature":1.5`), on(oracle), nil, 400, `"param":"temperature"`, "", ""},
		{"no question at Oracle", chatPath, `{"model":"cohere.command-r","messages":[{"role":"assistant","content":"Hi"}]}`, on(oracle), nil, 400, `"param":"messages"`, "", ""},
		{"a result without a call", chatPath, `{"model":"meta.llama-3.3-70b-instruct","messages":[{"role":"user","content":"x"},{"role":"tool","content":"y"}]}`, on(oracle), nil, 400, `"param":"messages[1].tool_call_id"`, "", ""},
		{"an error of Reka", chatPath, asks("reka-flash", ""), on(`{"provider":"reka-ai","api_key":"k"}`), []relaytest.Reply{failure(400, `{"detail":"no such thing"}`)}, 400, "no such thing", "", "400"},
	} {
		_, _, r := x.run(t, g)
		if x.status == 200 && !strings.Contains(x.path, "embed") && !strings.Contains(x.path, "images") && !strings.Contains(x.path, "ocr") && r.Usage.OutputTokens() == 0 || x.status != 200 && r.Cost != 0 {
			t.Errorf("%s: usage %+v, cost %d", x.name, r.Usage, r.Cost)
		}
		switch x.name {
		case "images on Vertex":
			if r.Usage.N(pricing.Images) != 2 {
				t.Errorf("%s: %+v", x.name, r.Usage)
			}
		case "a document":
			if r.Usage.N(pricing.Pages) != 2 {
				t.Errorf("%s: %+v", x.name, r.Usage)
			}
		case "Command by InvokeModel":
			if !r.Usage.Estimated {
				t.Errorf("%s: counts that never came are not estimated: %+v", x.name, r.Usage)
			}
		case "an inference profile":
			if r.Cost != 450_000 || !r.Priced {
				t.Errorf("%s: cost %d", x.name, r.Cost)
			}
		}
	}
}

// TestNativeRequestsPassThrough requires that a request in a provider's own format is signed again
// with the saved credential and otherwise forwarded byte for byte, and that its usage is recorded.
func TestNativeRequestsPassThrough(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	g.Provider("bedrock", "k", provider.Integration{AIProviderID: "bedrock", Configurations: map[string]any{"aws_auth_type": "apiKey", "aws_region": "us-east-1"}})
	g.Provider("google", "k", provider.Integration{AIProviderID: "google"})
	signed := []string{
		"X-Gateway-Provider", "@bedrock", "Authorization", "AWS4-HMAC-SHA256 Credential=ANY/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=00", "X-Gateway-Api-Key", g.Key([]string{write}, nil, nil),
		"X-Amz-Date", "20200101T000000Z", "X-Amz-Security-Token", "client", "X-Amz-Content-Sha256", "0", "X-Amzn-Bedrock-GuardrailIdentifier", "g",
	}
	stream := string(frames([][2]string{{"messageStart", `{"role":"assistant"}`}, {"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hello"}}`}, {"messageStop", `{"stopReason":"end_turn"}`}, {"metadata", `{"usage":{"inputTokens":100,"outputTokens":10,"totalTokens":110},"metrics":{"latencyMs":1}}`}}))
	google := []string{"X-Gateway-Provider", "@google"}
	for _, x := range []exchange{
		{"Converse", "/v1/model/amazon.nova-pro-v1%3A0/converse", converseAsks, signed, []relaytest.Reply{ok(converseBody)}, 200, converseBody, "X-Amzn-Bedrock-Guardrailidentifier: g & Authorization: Bearer k & !X-Amz-Security-Token & !20200101T & " + converseAsks, "200"},
		{"a stream of Converse", "/v1/model/amazon.nova-pro-v1:0/converse-stream", converseAsks, signed, []relaytest.Reply{{Status: 200, Header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}, Body: stream}}, 200, "Content-Type: application/vnd.amazon.eventstream & " + stream, "/converse-stream", "200"},
		{"Gemini in one list", "/v1/v1beta/models/gemini-2.5-flash:streamGenerateContent", geminiAsks, google, []relaytest.Reply{ok("[" + geminiReply + "]")}, 200, `"finishReason":"STOP"`, "/v1beta/models/gemini-2.5-flash:streamGenerateContent", "200"},
		{"Gemini as events", "/v1/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", geminiAsks, google, []relaytest.Reply{ok(sse(geminiReply))}, 200, `"finishReason":"STOP"`, "alt=sse", "200"},
	} {
		_, _, r := x.run(t, g)
		if r.Usage.N(pricing.Input) != 100 || r.Usage.OutputTokens() != 10 || r.Model == "" || r.FinishReason == "" {
			t.Errorf("%s: %+v of %q, %q", x.name, r.Usage, r.Model, r.FinishReason)
		}
	}
	sagemaker := on(strings.Replace(aws, `"bedrock"`, `"sagemaker","amzn_sagemaker_target_model":"m.tar.gz"`, 1) + "}")
	for _, kind := range []string{"application/json", "application/octet-stream"} { // read whole, and streamed
		x := exchange{"SageMaker, " + kind, "/v1/endpoints/my-endpoint/invocations", question, append(sagemaker, "Content-Type", kind), []relaytest.Reply{ok(reply)}, 200, "Hello", "/endpoints/my-endpoint/invocations & X-Amzn-Sagemaker-Target-Model: m.tar.gz & AWS4-HMAC-SHA256 & " + question, "200"}
		x.run(t, g)
	}
}

// TestModelsOfPathsAreHeldToTheList requires that the model that a path names counts, in whatever
// spelling the provider could read, and not what the body says.
func TestModelsOfPathsAreHeldToTheList(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	only := func(slug, id, model string, fields map[string]any) {
		g.Provider(slug, "k", provider.Integration{AIProviderID: id, Configurations: fields, Models: []provider.IntegrationModel{{Slug: model, Enabled: true}}})
	}
	only("google", "google", "gemini-2.5-flash", nil)
	only("vertex", "vertex-ai", "anthropic.claude-sonnet-4-5", map[string]any{"vertex_auth_type": "basic", "vertex_region": "us-central1", "vertex_project_id": "proj"})
	only("azure", "azure-openai", "gpt-4o-mini", map[string]any{"azure_auth_mode": "default", "azure_resource_name": "res", "azure_deployment_config": []map[string]string{{"azure_deployment_name": "gpt-4o-mini", "azure_api_version": "2024-10-21", "azure_model_slug": "gpt-4o-mini"}}})
	only("bedrock", "bedrock", "amazon.nova-pro-v1:0", map[string]any{"aws_auth_type": "apiKey", "aws_region": "us-east-1"})
	const (
		named  = `{"model":"gemini-2.5-flash","contents":[{"role":"user","parts":[{"text":"Hi"}]}]}`
		claude = `{"anthropic_version":"vertex-2023-10-16","max_tokens":50,"messages":[{"role":"user","content":"Hi"}]}`
		scope  = "/proxy/v1/projects/proj/locations/us-central1/publishers/"
	)
	for _, c := range []struct {
		slug, path, body, reply string // "": it is refused
	}{
		{"google", "/v1beta/models/gemini-2.5-flash:generateContent", geminiAsks, geminiReply},
		{"google", "/v1beta/models/gemini-2.5-pro:generateContent", geminiAsks, ""}, {"google", "/v1beta/models/gemini-2.5-pro:generateContent", named, ""},
		{"google", "/v1beta/models/gemini-2.5-pro%3AgenerateContent", named, ""}, {"google", "/proxy/v1beta//models/gemini-2.5-pro:generateContent", named, ""},
		{"google", "/proxy/v1beta/models/gemini-2.5-flash/%2e%2e/gemini-2.5-pro:generateContent", named, ""},
		{"vertex", scope + "anthropic/models/claude-sonnet-4-5:rawPredict", claude, claudeReply},
		{"vertex", scope + "anthropic/models/claude-opus-4-1:rawPredict", claude, ""}, {"vertex", scope + "google/models/claude-sonnet-4-5:generateContent", geminiAsks, ""},
		{"azure", "/proxy/deployments/gpt-4o/chat/completions?api-version=2024-10-21", asks("gpt-4o-mini", ""), ""},
		{"bedrock", "/model/amazon.nova-pro-v1%3A0/converse", converseAsks, converseBody}, {"bedrock", "/model/amazon.nova-pro-v1:0/converse", converseAsks, converseBody},
		{"bedrock", "/model/anthropic.claude-sonnet-4-5/converse", converseAsks, ""}, {"bedrock", "/proxy/model/anthropic.claude-sonnet-4-5/converse", converseAsks, ""},
	} {
		x := exchange{c.slug + c.path, "/v1" + c.path, c.body, []string{"X-Gateway-Provider", "@" + c.slug}, nil, 403, "model_not_allowed", "", ""}
		if c.reply != "" {
			x.script, x.status, x.has = []relaytest.Reply{ok(c.reply)}, 200, ""
		}
		if _, _, r := x.run(t, g); r.Priced && r.Cost == 0 && x.status == 200 {
			t.Errorf("%s: %q cost %d", x.name, r.Model, r.Cost)
		}
	}
}
