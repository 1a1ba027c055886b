package vendors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Shapes of bodies.
type messages []struct{ Role, Content string }

var key = map[string]string{"Authorization": "Bearer the-key"}

const keyed = `{"apiKey":"the-key"}`

type azureSafety struct {
	Text                       string
	Categories, BlocklistNames []string
}

type azureDocuments struct {
	Kind       string
	Parameters struct {
		Domain, ModelVersion string
		PIICategories        []string
	}
	AnalysisInput struct {
		Documents []struct{ ID, Language, Text string }
	}
}

type bedrockBody struct {
	Source  string
	Content []struct{ Text struct{ Text string } }
}

// signed tells what is wrong with a signature of AWS.
func signed(region string) func(*http.Request, []byte) string {
	return func(r *http.Request, body []byte) string {
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil {
			return "the time of the signature"
		}
		sum := sha256.Sum256(body)
		again, _ := http.NewRequest(r.Method, "https://"+r.Host+r.URL.EscapedPath(), bytes.NewReader(body))
		again.Header.Set("Content-Type", r.Header.Get("Content-Type"))
		again.ContentLength = 0
		if err := v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "the-secret"}, again, hex.EncodeToString(sum[:]), "bedrock", region, at); err != nil {
			return err.Error()
		}
		if got, want := r.Header.Get("Authorization"), again.Header.Get("Authorization"); got != want {
			return "the signature " + got + ", not " + want
		}
		return ""
	}
}

const blocked = `{"usage":{},"action":"GUARDRAIL_INTERVENED","outputs":[{"text":"no"}],"assessments":[{"contentPolicy":{"filters":[{"type":"HATE","confidence":"HIGH","action":"BLOCKED"}]},"sensitiveInformationPolicy":{"piiEntities":[{"type":"EMAIL","match":"ann@example.com","action":"ANONYMIZED"}]}}]}`

var proofs = slices.Concat(firstProofs, scanProofs, judgeProofs)

var firstProofs = []proof{
	{id: "aporia.validateProject", params: `{"projectID":"p 1"}`, creds: `{"apiKey":"the-key"}`, host: "gr-prd.aporia.com", path: "/p%201/validate", header: map[string]string{"X-Aporia-Api-Key": "the-key"},
		shape: struct {
			Messages          messages
			Explain           bool
			Validation_target string
		}{}, golden: `{"explain":true,"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"mail ann@example.com 🙂 now"}],"validation_target":"prompt"}`,
		passes: []string{`{"action":"passthrough","revised_response":null}`}, fails: map[string]string{`{"action":"block","explain_log":[]}`: "block", `{"action":"modify"}`: "modify"}, wrong: []string{`{"action":"maybe"}`, `{"action":true}`}},
	{id: "aporia.validateProject", behind: true, params: `{"projectID":"p"}`, creds: `{"apiKey":"the-key","apiEndpoint":"https://own.example.com/base/"}`, host: "own.example.com", path: "/base/p/validate", header: map[string]string{"X-Aporia-Api-Key": "the-key"},
		shape: struct {
			Messages                    messages
			Explain                     bool
			Validation_target, Response string
		}{}, golden: `{"explain":true,"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"mail ann@example.com 🙂 now"}],"response":"write to bob@example.com","validation_target":"response"}`,
		passes: []string{`{"action":"passthrough"}`}, fails: map[string]string{`{"action":"rephrase","revised_response":"bob@example.com"}`: "rephrase"}},
	{id: "azure.contentSafety", params: `{"categories":["Hate","Violence"],"severity":4,"blocklistNames":["mine"]}`, creds: `{"contentSafety":{"resourceName":"res-1","apiKey":"the-key"}}`,
		host: "res-1.cognitiveservices.azure.com", path: "/contentsafety/text:analyze?api-version=2024-11-01", header: map[string]string{"Ocp-Apim-Subscription-Key": "the-key"}, shape: azureSafety{},
		golden: `{"blocklistNames":["mine"],"categories":["Hate","Violence"],"text":"mail ann@example.com 🙂 now"}`,
		passes: []string{`{"blocklistsMatch":[],"categoriesAnalysis":[{"category":"Hate","severity":2},{"category":"Violence","severity":0}]}`},
		fails: map[string]string{`{"categoriesAnalysis":[{"category":"Hate","severity":4}]}`: "Hate",
			`{"blocklistsMatch":[{"blocklistName":"mine","blocklistItemId":"1","blocklistItemText":"ann@example.com"}],"categoriesAnalysis":[]}`: "blocklist/mine"},
		wrong: []string{`{"categoriesAnalysis":[{"category":"Hate","severity":"4"}]}`, `{"categoriesAnalysis":{}}`, `{"categoriesAnalysis":[5]}`}},
	{id: "azure.contentSafety", kind: "complete", creds: `{"contentSafety":{"resourceName":"res","azureAuthMode":"entra","tenantId":"the-tenant","clientId":"the-client","clientSecret":"the-secret"}}`,
		host: "res.cognitiveservices.azure.com", path: "/contentsafety/text:analyze?api-version=2024-11-01", header: map[string]string{"Authorization": "Bearer entra-token"}, shape: azureSafety{},
		golden: `{"text":"mail ann@example.com 🙂 now"}`,
		passes: []string{`{"categoriesAnalysis":[{"category":"Hate","severity":1}]}`}, fails: map[string]string{`{"categoriesAnalysis":[{"category":"Hate","severity":2}]}`: "Hate"}},
	{id: "azure.pii", texts: []string{"mail ann@example.com", "", "and sun"}, params: `{"piiCategories":["Email"],"language":"de"}`, creds: `{"pii":{"resourceName":"res","apiKey":"the-key"}}`,
		host: "res.cognitiveservices.azure.com", path: "/language/:analyze-text?api-version=2024-11-01", header: map[string]string{"Ocp-Apim-Subscription-Key": "the-key"}, shape: azureDocuments{},
		golden: `{"analysisInput":{"documents":[{"id":"0","language":"de","text":"mail ann@example.com"},{"id":"2","language":"de","text":"and sun"}]},"kind":"PiiEntityRecognition","parameters":{"domain":"none","modelVersion":"latest","piiCategories":["Email"]}}`,
		passes: []string{`{"kind":"PiiEntityRecognitionResults","results":{"documents":[{"id":"0","redactedText":"mail ann@example.com","entities":[]},{"id":"2","redactedText":"and sun","entities":[]}],"errors":[]}}`},
		fails:  map[string]string{`{"results":{"documents":[{"id":"0","redactedText":"mail ***","entities":[{"text":"ann@example.com","category":"Email"}]},{"id":"2","redactedText":"and sun","entities":[]}]}}`: "Email"},
		masks:  map[string]string{`{"results":{"documents":[{"id":"0","redactedText":"mail ***","entities":[{"text":"ann@example.com","category":"Email"}]},{"id":"2","redactedText":"and sun","entities":[]}]}}`: "mail ***//"},
		wrong: []string{`{"results":{"documents":[{"id":"0","redactedText":"mail","entities":[]}],"errors":[{"id":"2"}]}}`, `{"results":{"documents":[{"id":"7","redactedText":"mail","entities":[]}]}}`,
			`{"results":{"documents":[{"id":"0","redactedText":5,"entities":[]},{"id":"2","redactedText":"and sun","entities":[]}]}}`}},
	{id: "azure.shieldPrompt", creds: `{"contentSafety":{"resourceName":"res","apiKey":"the-key","customHost":"https://private.example.com"}}`,
		host: "private.example.com", path: "/contentsafety/text:shieldPrompt?api-version=2024-09-01", header: map[string]string{"Ocp-Apim-Subscription-Key": "the-key"},
		shape: struct {
			UserPrompt string
			Documents  []string
		}{}, golden: `{"documents":[],"userPrompt":"be kind"}`,
		passes: []string{`{"userPromptAnalysis":{"attackDetected":false},"documentsAnalysis":[]}`},
		fails:  map[string]string{`{"userPromptAnalysis":{"attackDetected":true}}`: "prompt_attack", `{"userPromptAnalysis":{"attackDetected":false},"documentsAnalysis":[{"attackDetected":true}]}`: "document_attack"}},
	{id: "azure.protectedMaterial", behind: true, creds: `{"contentSafety":{"resourceName":"res","apiKey":"the-key"}}`,
		host: "res.cognitiveservices.azure.com", path: "/contentsafety/text:detectProtectedMaterial?api-version=2024-09-01", header: map[string]string{"Ocp-Apim-Subscription-Key": "the-key"},
		shape: struct{ Text string }{}, golden: `{"text":"write to bob@example.com"}`,
		passes: []string{`{"protectedMaterialAnalysis":{"detected":false}}`}, fails: map[string]string{`{"protectedMaterialAnalysis":{"detected":true}}`: "protected_material"}, wrong: []string{`{"protectedMaterialAnalysis":{"detected":"true"}}`}},
	{id: "bedrock.guard", params: `{"guardrailId":"gr-1","guardrailVersion":"DRAFT"}`, creds: `{"awsAccessKeyId":"AKIDEXAMPLE","awsSecretAccessKey":"the-secret","awsRegion":"eu-central-1"}`,
		host: "bedrock-runtime.eu-central-1.amazonaws.com", path: "/guardrail/gr-1/version/DRAFT/apply", header: map[string]string{"Authorization": "*", "X-Amz-Date": "*"}, shape: bedrockBody{}, check: signed("eu-central-1"),
		golden: `{"content":[{"text":{"text":"mail ann@example.com 🙂 now"}}],"source":"INPUT"}`,
		passes: []string{`{"action":"NONE","assessments":[],"outputs":[],"usage":{}}`,
			`{"action":"NONE","assessments":[{"contentPolicy":{"filters":[{"type":"HATE","action":"NONE","detected":true}]}}]}`, // it only detects
			`{"action":"GUARDRAIL_INTERVENED","assessments":[{"wordPolicy":{"customWords":[{"match":"x","action":"NONE"}]},"topicPolicy":{"topics":[{"name":"t","action":"NONE"}]}}],"outputs":[]}`},
		fails: map[string]string{blocked: "contentPolicy/HATE", `{"action":"GUARDRAIL_INTERVENED","assessments":[]}`: "intervened",
			`{"action":"GUARDRAIL_INTERVENED","assessments":[{"sensitiveInformationPolicy":{"regexes":[{"name":"id","action":"ANONYMIZED"}]}}],"outputs":[{"text":"{id}"}]}`: "sensitiveInformationPolicy/id"},
		masks: map[string]string{`{"action":"GUARDRAIL_INTERVENED","assessments":[{"sensitiveInformationPolicy":{"piiEntities":[{"type":"EMAIL","match":"ann@example.com","action":"ANONYMIZED"}]}}],"outputs":[{"text":"mail {EMAIL} now"}]}`: "mail {EMAIL} now"},
		wrong: []string{`{"action":"MAYBE"}`, `{"action":"NONE","assessments":{}}`, `{"action":"NONE","assessments":[{"contentPolicy":{"filters":[{"action":5}]}}]}`}},
	{id: "bedrock.guard", behind: true, params: `{"guardrailId":"arn:aws:bedrock:us-east-1:1:guardrail/x","guardrailVersion":"2"}`, creds: `{"awsAccessKeyId":"AKIDEXAMPLE","awsSecretAccessKey":"the-secret"}`,
		host: "bedrock-runtime.us-east-1.amazonaws.com", path: "/guardrail/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aguardrail%2Fx/version/2/apply", header: map[string]string{"Authorization": "*", "X-Amz-Date": "*"}, shape: bedrockBody{}, check: signed("us-east-1"),
		golden: `{"content":[{"text":{"text":"write to bob@example.com"}}],"source":"OUTPUT"}`, passes: []string{`{"action":"NONE"}`}, fails: map[string]string{blocked: "contentPolicy/HATE"}},
	{id: "f5-guardrails.scan", params: `{"projectId":"p"}`, creds: keyed, host: "us1.calypsoai.app", path: "/backend/v1/scans", header: key, shape: struct{ Input, Project string }{},
		golden: `{"input":"mail ann@example.com 🙂 now","project":"p"}`, passes: []string{`{"id":"1","result":{"outcome":"cleared","scannerResults":[]}}`},
		fails: map[string]string{`{"result":{"outcome":"flagged"}}`: "flagged", `{"result":{"outcome":"blocked"},"redactedInput":"x"}`: "blocked", `{"result":{"outcome":"redacted"},"redactedInput":"mail"}`: "redacted"},
		masks: map[string]string{`{"result":{"outcome":"redacted"},"redactedInput":"mail <>"}`: "mail <>"}, wrong: []string{`{"result":{"outcome":"odd"}}`, `{"result":{"outcome":"cleared"},"redactedInput":[]}`}},
	{id: "mistral.moderateContent", params: `{"categories":["pii","health"]}`, creds: keyed, host: "api.mistral.ai", path: "/v1/chat/moderations", header: key, shape: struct {
		Model string
		Input []messages
	}{}, golden: `{"input":[[{"role":"system","content":"be kind"},{"role":"user","content":"mail ann@example.com 🙂 now"}]],"model":"mistral-moderation-latest"}`,
		passes: []string{`{"id":"1","model":"m","results":[{"categories":{"pii":false,"health":false,"law":true},"category_scores":{"pii":0.1}}]}`},
		fails:  map[string]string{`{"results":[{"categories":{"pii":true},"category_scores":{"pii":0.9}}]}`: "pii"},
		wrong:  []string{`{"results":[]}`, `{"results":[{"categories":{"pii":1}}]}`}},
	{id: "mistral.moderateContent", kind: "complete", behind: true, params: `{"categories":["pii"],"model":"mine"}`, creds: keyed, host: "api.mistral.ai", path: "/v1/moderations", header: key, shape: struct {
		Model string
		Input []string
	}{}, golden: `{"input":["write to bob@example.com"],"model":"mine"}`,
		passes: []string{`{"results":[{"categories":{"pii":false}}]}`}, fails: map[string]string{`{"results":[{"categories":{"pii":true}}]}`: "pii"}},
}
